import { haystack } from './haystack.ts';
import { langchainJs } from './langchain-js.ts';
import { langchainPy } from './langchain-py.ts';
import { langchainPyV2 } from './langchain-py-v2.ts';
import { langgraphStore } from './langgraph-store.ts';
import { langgraphStoreJs } from './langgraph-store-js.ts';
import { llamaindexPy } from './llamaindex-py.ts';
import { llamaindexTs } from './llamaindex-ts.ts';
import { mastra } from './mastra.ts';
import { mem0 } from './mem0.ts';
import { mem0Supabase } from './mem0-supabase.ts';
import { n8n } from './n8n.ts';
import type { PresetName } from './names.ts';
import type { Preset } from './preset.ts';
import { springAi } from './spring-ai.ts';
import { supabase } from './supabase.ts';
import { typeorm } from './typeorm.ts';
import { vecs } from './vecs.ts';
import { vercelDrizzle } from './vercel-drizzle.ts';

/** As the libraries' own sources write them; each file says which. */
export const PRESETS: Readonly<Record<PresetName, Preset>> = {
  'langchain-py': langchainPy,
  'langchain-py-v2': langchainPyV2,
  'langchain-js': langchainJs,
  n8n,
  typeorm,
  'llamaindex-py': llamaindexPy,
  'llamaindex-ts': llamaindexTs,
  mem0,
  'mem0-supabase': mem0Supabase,
  supabase,
  vecs,
  'spring-ai': springAi,
  haystack,
  'vercel-drizzle': vercelDrizzle,
  'langgraph-store': langgraphStore,
  'langgraph-store-js': langgraphStoreJs,
  mastra,
  custom: { fields: {} },
};
