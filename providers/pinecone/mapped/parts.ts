import { type Metric } from '../score.ts';
import { type Overlay } from '../overlay.ts';
import type { Embedder } from '#contract';
import type { Service } from '../client/client.ts';
import type { Fields } from './mapped-record.ts';

/** What the verbs on an index that somebody else fills work with. */
export interface Existing {
  readonly service: Service;
  readonly namespace: string;
  readonly fields: Fields;
  readonly embedder: Embedder;
  readonly metric: Metric;
  /** What this gateway wrote, so that it reads its own writes; empty while it may not write. */
  readonly overlay: Overlay;
  /** Most records of one user that a list reads. */
  readonly max_listed: number;
}
