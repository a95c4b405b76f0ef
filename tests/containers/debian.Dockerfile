# Stand-ins for the public images of deploy/compose/compose.yaml, of Debian's packages: for where no registry is.
ARG BASE_IMAGE
FROM ${BASE_IMAGE} AS packages
RUN --mount=type=secret,id=apt,target=/etc/apt/sources.list.d/build.list --mount=type=secret,id=ca \
    mkdir -p /usr/share/man/man1 /usr/share/man/man7 \
    && apt-get update \
    && apt-get install -y --no-install-recommends postgresql haproxy prometheus \
    && rm -rf /var/lib/apt/lists /var/cache/apt

# As postgres:16 of the registry: makes the user and the database of its environment at the first start.
FROM packages AS postgres
RUN install -d -m 0700 -o postgres -g postgres /var/lib/postgresql/data
COPY postgres.sh /postgres.sh
USER postgres
ENTRYPOINT ["sh", "/postgres.sh"]

FROM packages AS haproxy
ENTRYPOINT ["haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]

FROM packages AS prometheus
USER prometheus
WORKDIR /var/lib/prometheus
ENTRYPOINT ["prometheus", "--config.file=/etc/prometheus/prometheus.yml"]
