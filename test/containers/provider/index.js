import { defineProvider } from 'omp-gateway/provider';

export default defineProvider({
  specVersion: 2,
  name: 'mounted',
  open: async () => ({ get: async () => undefined, ping: async () => {}, close: async () => {} }),
});
