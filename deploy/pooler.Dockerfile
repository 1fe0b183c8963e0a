# Debian's PgBouncer between nodes and PostgreSQL: built by `docker compose -f compose.scale.yaml --profile pooler up`.
FROM docker.io/library/debian:bookworm-slim
RUN apt-get update \
 && apt-get install --yes --no-install-recommends pgbouncer \
 && rm -rf /var/lib/apt/lists/*
COPY --chmod=755 pooler.sh /usr/local/bin/pooler
# Its settings are written when it starts: all else may be read-only.
USER 65534:65534
EXPOSE 6432
# It lets transactions under way end.
STOPSIGNAL SIGINT
HEALTHCHECK --interval=5s --timeout=5s CMD ["bash", "-c", "</dev/tcp/127.0.0.1/${POOLER_PORT:-6432}"]
ENTRYPOINT ["pooler"]
