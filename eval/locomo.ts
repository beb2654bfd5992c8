import { z } from 'zod';
import type { Conversations, Turn } from './dataset.ts';

const FileTurn = z.object({ speaker: z.string(), dia_id: z.string(), text: z.string() });

/** The public file: a list of conversations, each with its sessions under the keys `session_1`, `session_2`, … */
const File = z.array(
  z.object({
    sample_id: z.string().min(1),
    conversation: z.record(z.string(), z.unknown()),
    qa: z.array(
      z.object({
        question: z.string(),
        evidence: z.array(z.string()).default([]),
        category: z.int().min(1).max(5),
        /** When the question is asked, if it depends on that. Not in the public file. */
        now: z.iso.datetime().optional(),
      }),
    ),
  }),
);

/** The order in which the file counts its categories. */
const KINDS = ['', 'multi_hop', 'temporal', 'open_domain', 'single_hop', 'adversarial'] as const;

/** The file has the time of a session only; its turns follow each other. */
const BETWEEN_TURNS_MS = 20_000;

/**
 * A conversation becomes a user, a session a `source.ref`, a turn a memory. Left out: turns without text, adversarial questions
 * (their answer is not in the conversation), and questions without evidence.
 */
export function fromLocomo(file: unknown): Conversations {
  const samples = File.parse(file).map(({ sample_id: user, conversation, qa }) => {
    const facts = Object.keys(conversation)
      .filter((name) => /^session_\d+$/.test(name))
      .flatMap((name) => turnsOf(user, name, conversation));
    const keys = new Set(facts.map(({ key }) => key));
    const questions = qa.flatMap(({ question, evidence, category, now }) => {
      const kind = KINDS[category] as string;
      const present = turnsNamed(evidence)
        .map((turn) => `${user}/${turn}`)
        .filter((key) => keys.has(key));
      if (kind === 'adversarial' || present.length === 0) return [];
      return [{ question, user, kind, evidence: present, ...(now && { now }) }];
    });
    return { facts, questions };
  });
  return {
    facts: samples.flatMap(({ facts }) => facts),
    questions: samples.flatMap(({ questions }) => questions),
  };
}

function turnsOf(user: string, session: string, conversation: Readonly<Record<string, unknown>>): Turn[] {
  const start = timeOf(`${conversation[`${session}_date_time`]}`);
  const turns = z.array(FileTurn).parse(conversation[session]);
  return turns.flatMap(({ speaker, dia_id, text }, index) => {
    if (text.trim() === '') return [];
    const at = new Date(start + index * BETWEEN_TURNS_MS).toISOString();
    return [{ key: `${user}/${dia_id}`, user, content: `${speaker}: ${text}`, ref: `${user}/${session}`, at }];
  });
}

/** Of "1:56 pm on 8 May, 2023", taken as UTC. */
function timeOf(text: string): number {
  const [time, day] = text.split(' on ');
  const parsed = Date.parse(`${day} ${time} UTC`);
  if (Number.isNaN(parsed)) throw new Error(`"${text}" is no time of a session, such as "1:56 pm on 8 May, 2023".`);
  return parsed;
}

/** Some entries of the file hold several turns (`D8:6; D9:17`) or a padded number (`D30:05`). */
const turnsNamed = (evidence: readonly string[]): string[] => [
  ...new Set(
    evidence.flatMap((entry) =>
      [...entry.matchAll(/D(\d+):(\d+)/g)].map(([, session, turn]) => `D${Number(session)}:${Number(turn)}`),
    ),
  ),
];
