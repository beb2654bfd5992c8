import { z } from 'zod';

/** The options of a collection. `src/config/qdrant-settings.ts` derives the settings from them. */
export const Options = z.strictObject({
  /** Address of the server. Without a port it is 6333, as in every client of Qdrant; a path is put before those of the interface. */
  url: z.url({ protocol: /^https?$/ }).default('http://127.0.0.1:6333'),
  api_key: z
    .string()
    .regex(/^[\x21-\x7e]+$/)
    .optional(),
  collection: z
    .string()
    // biome-ignore lint/suspicious/noControlCharactersInRegex: what the server refuses
    .regex(/^[^<>:"/\\|?*\0\x1f]{1,255}$/)
    .default('omp-memories'),
  /** Whether a search compares all vectors of the user; false: those of a user with very many are searched by the index, approximately. */
  exact: z.boolean().default(true),
});
export type Options = z.output<typeof Options>;
