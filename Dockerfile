# The image of omp-gateway, with BuildKit (Docker 23 or newer):
#   docker build -t omp-gateway .                            or: --platform linux/arm64
#   docker build --sbom=true --provenance=true -t omp-gateway .   with attestations
# /app/sbom.cdx.json (CycloneDX) lists the contents; scanners also read package-lock.json and node_modules.

# Debian slim instead of distroless: the tag names an exact Node, the native parts need glibc, and operators get a shell. A
# tag is rebuilt for Debian's fixes; for the same bytes every time add its digest:
#   --build-arg NODE_IMAGE=node:22.23.3-trixie-slim@sha256:…
# Node 22: on 24 the start of the embedded Postgres takes 950 MB for a moment instead of 510, since V8 13.6 needs 600 MB to
# compile one function of the engine.
ARG NODE_IMAGE=node:22.23.3-trixie-slim

# The compiler and the sources of the API page stay in this stage. It runs on the build platform: its output is JavaScript.
FROM --platform=$BUILDPLATFORM ${NODE_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY . .
# The tests of providers need vitest. The modes of files may be those of a clone that only its owner can read.
RUN npm run build && rm -rf dist/test && chmod -R a+rX assets dist

# No dependency needs an install script or differs between platforms: native parts are prebuilt for all of them.
FROM --platform=$BUILDPLATFORM ${NODE_IMAGE} AS dependencies
# npm gives the component in the SBOM the name of the folder.
WORKDIR /omp-gateway
COPY --chmod=644 package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts
# With development dependencies in package.json, npm would also omit packages that they share.
RUN npm pkg delete devDependencies && npm sbom --sbom-format=cyclonedx --sbom-type=application >sbom.cdx.json
# Source maps, declarations, documents and native parts for other systems: more than a quarter of all bytes. Licences stay.
RUN find node_modules -type f '(' -name '*.map' -o -name '*.ts' -o -name '*.mts' -o -name '*.cts' -o -iname '*.md' ')' \
      ! -iname '*licen[cs]e*' ! -iname '*notice*' -delete \
    && rm -rf node_modules/fs-native-extensions/prebuilds/[!l]*
# A provider that is mounted below /app/providers imports omp-gateway/provider: it is this gateway's.
RUN ln -s .. node_modules/omp-gateway

FROM ${NODE_IMAGE}
LABEL org.opencontainers.image.title="omp-gateway" \
      org.opencontainers.image.description="The Open Memory Protocol in front of the vector database you already have" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"
# This stage installs nothing. Only the embedded Postgres writes to /data, and a new volume there gets its owner. With VOLUME each
# container would get one, in front of other databases too. The root file system may be read-only; /tmp holds sockets.
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack /usr/local/bin/yarn /usr/local/bin/yarnpkg /opt/yarn-* \
    && mkdir -m 700 /data && chown 1000:1000 /data \
    && ln -s /app/dist/src/main.js /usr/local/bin/omp-gateway
ENV NODE_ENV=production
# Inside a container every interface is the container's own. Without a key it starts only with OMP_AUTH=open or required.
ENV OMP_HOST=0.0.0.0
ENV OMP_DATA_DIR=/data
WORKDIR /app
# Layers that change least come first.
COPY --from=dependencies /omp-gateway ./
COPY --chmod=644 LICENSE ./
COPY --from=build /build/assets ./assets
COPY --from=build /build/dist ./dist
# The user "node", as numbers, so that an orchestrator can see that it is not root.
USER 1000:1000
# Requests; metrics, if OMP_METRICS_PORT=9464 and OMP_METRICS_HOST=0.0.0.0 are set.
EXPOSE 8080 9464
STOPSIGNAL SIGTERM
# Checks the process, not its backend: a restart of this container would not repair the backend.
# The port is that of the variable OMP_PORT, not of an argument. It opens at the end of a start, which may take long the first
# time; its first answer ends the start period.
# A shell, since a Node for each check would take 57 MB.
HEALTHCHECK --interval=10s --timeout=5s --start-period=300s \
  CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/${OMP_PORT:-8080} && printf 'GET /livez HTTP/1.0\\r\\n\\r\\n' >&3 && read -r _ status _ <&3 && [ $status = 200 ]"]
# What follows the name of the image in docker run are arguments of omp-gateway: --help, keys, doctor.
ENTRYPOINT ["node", "/app/dist/src/main.js"]
