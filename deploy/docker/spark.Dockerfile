# A Spark Thrift Server to try the proxy with, of PySpark's package: not for production.
#
#   DOCKER_BUILDKIT=1 docker build -f deploy/docker/spark.Dockerfile -t starpruner-spark:0.1.0 .
#
# Indexes of packages other than PyPI and Debian's are secrets of the build, of which no layer tells:
#
#   --secret id=pip,src=pip.conf --secret id=apt,src=sources.list --secret id=ca,src=ca.pem
ARG BASE_IMAGE=python:3.12-slim-bookworm

FROM ${BASE_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_CONFIG_FILE=/run/secrets/pip
WORKDIR /source
COPY deploy/docker/build-requirements.txt deploy/docker/requirements.txt ./deploy/docker/
COPY deploy/docker/spark-requirements.txt ./deploy/docker/
# PySpark is a source package, which setuptools builds.
RUN --mount=type=secret,id=pip --mount=type=secret,id=ca \
    python3 -m venv /opt/spark \
    && /opt/spark/bin/pip install --no-deps setuptools==84.2.1 \
        -r deploy/docker/build-requirements.txt -r deploy/docker/requirements.txt \
    && /opt/spark/bin/pip install --no-deps --no-build-isolation -r deploy/docker/spark-requirements.txt
COPY pyproject.toml README.md LICENSE ./
COPY rewriter rewriter
COPY proxy proxy
COPY pipeline pipeline
COPY demo demo
RUN /opt/spark/bin/pip install --no-deps --no-index --no-build-isolation . \
    && ln -s "$(/opt/spark/bin/python -c 'import pyspark; print(pyspark.__path__[0])')" /opt/spark/home

FROM ${BASE_IMAGE}
# Java's package links a manual page, and Debian's slim images have no directory for it.
RUN --mount=type=secret,id=apt,target=/etc/apt/sources.list.d/build.list --mount=type=secret,id=ca \
    mkdir -p /usr/share/man/man1 \
    && apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jre-headless libpostgresql-jdbc-java procps \
    && rm -rf /var/lib/apt/lists /var/cache/apt /var/log/apt /var/log/dpkg.log
COPY --from=build /opt/spark /opt/spark
# Hadoop asks for the name of the user, so a number is not enough.
RUN useradd --uid 10002 --home-dir /warehouse --create-home --shell /usr/sbin/nologin spark
ENV PATH=/opt/spark/bin:$PATH SPARK_HOME=/opt/spark/home SPARK_CONF_DIR=/etc/spark
USER 10002:10002
WORKDIR /warehouse
EXPOSE 10000 4040
HEALTHCHECK --interval=5s --timeout=10s --start-period=120s --retries=3 \
    CMD ["python", "-c", "from demo.hive import Endpoint, connect; connect(Endpoint('127.0.0.1', 10000)).close()"]
ENTRYPOINT ["/opt/spark/home/bin/spark-submit", \
    "--class", "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2", "spark-internal", \
    "--hiveconf", "hive.server2.thrift.bind.host=0.0.0.0"]
