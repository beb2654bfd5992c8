# What the compiler and the API page need stays in this stage.
FROM node:24-slim AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY . .
RUN npm run build

# No dependency needs an install script: native parts come prebuilt inside their packages.
FROM node:24-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts

FROM node:24-slim
LABEL org.opencontainers.image.title="omp-gateway" \
      org.opencontainers.image.description="The Open Memory Protocol in front of the vector database you already have" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV NODE_ENV=production
# Inside a container every interface is the container's own. Before its port is published: OMP_AUTH=required, or a key.
ENV OMP_HOST=0.0.0.0
ENV OMP_DATA_DIR=/data
WORKDIR /app
COPY package.json LICENSE ./
COPY --from=dependencies /app/node_modules ./node_modules
COPY --from=build /build/assets ./assets
COPY --from=build /build/dist ./dist
# A new volume takes over this owner.
RUN mkdir -m 700 /data && chown node:node /data
VOLUME /data
# The user "node", as numbers, so that an orchestrator can see that it is not root.
USER 1000:1000
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.OMP_PORT || 8080}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "/app/dist/src/main.js"]
