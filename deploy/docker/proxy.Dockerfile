# The proxy alone: no Spark, no Java. From the root of the checkout:
#
#   DOCKER_BUILDKIT=1 docker build -f deploy/docker/proxy.Dockerfile -t starpruner:0.1.0 .
#
# An index of packages other than PyPI is a secret of the build, of which no layer tells:
#
#   --secret id=pip,src=pip.conf --secret id=ca,src=ca.pem     (in pip.conf: cert = /run/secrets/ca)
#
# Spans for OpenTelemetry ([tracing]) take 12 MB more: --build-arg EXTRAS=tracing
#
# Both images need the same Python. The first also needs `strip`, as the image of Python with a compiler has it.
ARG BUILD_IMAGE=python:3.12-bookworm
ARG BASE_IMAGE=python:3.12-slim-bookworm

FROM ${BUILD_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_CONFIG_FILE=/run/secrets/pip
WORKDIR /source
COPY deploy/docker/build-requirements.txt deploy/docker/requirements.txt deploy/docker/tracing-requirements.txt \
    ./deploy/docker/
# pip stays in the environment that builds, and installs into the other one.
RUN --mount=type=secret,id=pip --mount=type=secret,id=ca \
    python3 -m venv /build \
    && /build/bin/pip install --no-deps -r deploy/docker/build-requirements.txt \
    && python3 -m venv --without-pip /opt/starpruner \
    && /build/bin/pip --python /opt/starpruner/bin/python install --no-deps --only-binary :all: --no-compile \
        -r deploy/docker/requirements.txt
ARG EXTRAS=
RUN --mount=type=secret,id=pip --mount=type=secret,id=ca \
    for extra in ${EXTRAS}; do \
        /build/bin/pip --python /opt/starpruner/bin/python install --no-deps --only-binary :all: --no-compile \
            -r "deploy/docker/$extra-requirements.txt" || exit 1; \
    done
COPY pyproject.toml README.md LICENSE ./
COPY rewriter rewriter
COPY proxy proxy
COPY pipeline pipeline
COPY demo demo
# Symbols for debuggers are two thirds of the libraries. The byte code is compiled here, since nothing can be written
# where it runs.
RUN /build/bin/python -m hatchling build -t wheel -d /wheel \
    && /build/bin/pip --python /opt/starpruner/bin/python install --no-deps --no-index --no-compile /wheel/*.whl \
    && find /opt/starpruner -name '*.so' -exec strip --strip-unneeded {} + \
    && /opt/starpruner/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/starpruner/lib

FROM ${BASE_IMAGE}
COPY --from=build /opt/starpruner /opt/starpruner
COPY deploy/docker/starpruner.toml /etc/starpruner/starpruner.toml
# The history's, if `history.path` is below it: /var/lib/starpruner and /tmp are all that it writes to.
RUN install -d -m 0700 -o 10001 -g 10001 /var/lib/starpruner
ENV PATH=/opt/starpruner/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
WORKDIR /var/lib/starpruner
EXPOSE 10001 10080
# Of the admin port in starpruner.toml.
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:10080/healthz', timeout=4)"]
ENTRYPOINT ["starpruner"]
CMD ["serve", "--config", "/etc/starpruner/starpruner.toml"]
