import type { Metadata } from '../client/client.ts';
import type { Options } from '../options.ts';
import { PRESETS, type Preset } from './presets.ts';

/** Under which metadata keys an index keeps what a memory consists of. Undefined: it keeps none. */
export interface Fields {
  readonly text: string;
  readonly user: string;
  readonly created: string | undefined;
  readonly updated: string | undefined;
  readonly tags: string | undefined;
  /** The text of a record; undefined where there is none. */
  readonly textIn: (metadata: Metadata) => unknown;
}

/** Throws an `Error` naming the settings that are missing or contradict each other. */
export function fieldsOf(options: Options): Fields {
  const { preset: name = 'custom', text_field, user_field, created_field, updated_field, tags_field } = options;
  const preset: Preset = PRESETS[name];
  if (options.layout !== 'single') {
    throw new Error(
      'OMP_PINECONE_LAYOUT is about indexes of our own; with OMP_PINECONE_PRESET only OMP_PINECONE_NAMESPACE is read',
    );
  }
  if (options.writable && preset.read_only !== undefined) {
    throw new Error(`OMP_PINECONE_WRITABLE cannot be used with OMP_PINECONE_PRESET=${name}: ${preset.read_only}`);
  }
  const text = text_field ?? preset.text;
  const user = user_field ?? preset.user;
  if (text === undefined || user === undefined) {
    const missing = [
      ...(text === undefined ? ['OMP_PINECONE_TEXT_FIELD'] : []),
      ...(user === undefined ? ['OMP_PINECONE_USER_FIELD'] : []),
    ];
    throw new Error(`OMP_PINECONE_PRESET=${name} needs ${missing.join(' and ')}: the metadata keys of the records`);
  }
  const created = created_field ?? preset.created;
  const updated = updated_field ?? preset.updated;
  const keys = [text, user, created, updated, tags_field].filter((key) => key !== undefined);
  const twice = keys.find((key, place) => keys.indexOf(key) !== place);
  if (twice !== undefined) {
    throw new Error(
      `the metadata key "${twice}" is named by two of the OMP_PINECONE_…_FIELD settings or their defaults`,
    );
  }
  const { textIn } = preset;
  const plain = (metadata: Metadata) => metadata[text];
  // Whoever names the key means that key.
  return { text, user, created, updated, tags: tags_field, textIn: text_field ? plain : (textIn ?? plain) };
}
