"""The main file of `starpruner pipeline` for spark-submit, which takes no console script: see docs/clusters.md."""

from pipeline.cli import pipeline

if __name__ == "__main__":
    pipeline(prog_name="starpruner pipeline")
