import { z } from 'zod';
import { drawMap } from '../core/map.ts';
import { leftOut, time } from './fields.ts';
import { ListInput, listAllowed } from './memories.ts';
import { memoryExample, withoutUndefined } from './memory.ts';
import { verb } from './verb.ts';

const coordinate = z.number().min(0).max(1);
const neighbours = (most: number) =>
  z
    .number()
    .min(0)
    .max(1)
    .meta({ description: `Share of the 10 nearest by cosine that are among the ${most} nearest on the plane.` });

/** The newest memories on a plane (Decision 42). */
export const map = verb({
  name: 'map',
  method: 'GET',
  path: '/map',
  input: ListInput.pick({ user_id: true, scope: true, tag: true }),
  needs: ['list', 'vectorsOf'],
  remedy: 'it needs stored vectors (OMP_SEARCH_MODE hybrid or vector) and a backend that lists',
  feature: 'map',
  facts: (input, access) => access.facts(input),
  run({ tag, ...filters }, access, call) {
    const { store, shares, bounds } = access;
    const { user_id } = filters;
    const query = { ...withoutUndefined(filters), tags: tag === undefined ? [] : [tag] };
    const source = {
      page: (after: Parameters<typeof listAllowed>[1]['after'], limit: number) =>
        listAllowed(access, { ...query, limit, ...(after && { after }) }, call),
      vectorsOf: (ids: readonly string[]) => store.vectorsOf({ ids, user_id, within: bounds.within }, call),
    };
    return shares.alone(call, () => drawMap(source, call));
  },
  id: 'getMap',
  summary: "Place a user's newest memories on a plane, by meaning",
  description: `Up to 2,000 memories that the caller may read, fewer if vectors have more than 768 components or contents
are long. Memories with a like meaning are near each other, as far as a plane allows: \`among_10\` and \`among_50\` say how
far. Available if \`features.map\` is true.`,
  success: {
    description: 'The places.',
    schema: z
      .looseObject({
        items: z
          .array(
            z.looseObject({
              id: z.string(),
              scope: z.string().nullable(),
              created_at: time('Creation time, UTC.'),
              text: z.string().meta({ description: 'The first 200 characters of the content.' }),
              x: coordinate,
              y: coordinate,
            }),
          )
          .meta({ description: 'Newest first.' }),
        more: z.boolean().meta({ description: 'Older memories are left out.' }),
        without_vector: z.int().min(0).meta({ description: 'Memories left out because they have no vector.' }),
        among_10: neighbours(10),
        among_50: neighbours(50),
        ...leftOut,
      })
      .meta({ id: 'MemoryMap' }),
    example: {
      items: [
        {
          id: memoryExample.id,
          scope: memoryExample.scope,
          created_at: memoryExample.created_at,
          text: memoryExample.content,
          x: 0.5,
          y: 0.5,
        },
      ],
      more: false,
      without_vector: 0,
      among_10: 1,
      among_50: 1,
    },
  },
});
