import { expect, it } from 'vitest';
import { FOREIGN_SCRIPT, withScriptWarning } from '../../src/embedding/open.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { call } from '../support/requests.ts';
import { recordingLog } from '../support/subject.ts';

const open = () => {
  const log = recordingLog();
  const embedder = withScriptWarning(hashingEmbedder(), log);
  const embed = (...texts: readonly string[]) => embedder.embed(texts, 'document', call);
  return { embed, said: () => log.lines.map(({ message }) => message) };
};
const times = (count: number, text: string): string[] => Array.from({ length: count }, (_, n) => `${text} ${n}`);

it.each([
  '緑茶が好きです',
  'любит зелёный чай',
  'يحب الشاي الأخضر',
  '녹차를 좋아한다',
  'αγαπά το πράσινο τσάι',
  '喜欢绿茶 (OMP)',
])('[Decision 34] the log says once that most texts are like "%s"', async (text) => {
  const { embed, said } = open();
  await embed(...times(7, text));
  expect(said()).toEqual([]);
  for (let n = 0; n < 300; n++) await embed(text);
  expect(said()).toEqual([FOREIGN_SCRIPT]);
});

it.each(['likes green tea', 'mag grünen Tee', 'preferă ceaiul verde', '12345 67 ☕', ''])(
  '[Decision 34] the log says nothing of texts like "%s"',
  async (text) => {
    const { embed, said } = open();
    for (let n = 0; n < 300; n++) await embed(text);
    expect(said()).toEqual([]);
  },
);

it('[Decision 34] the recent texts count', async () => {
  const { embed, said } = open();
  await embed(...times(2_000, 'likes green tea'), ...times(40, '緑茶が好きです'));
  expect(said()).toEqual([]);
  for (let n = 0; n < 20; n++) await embed(...times(8, '緑茶が好きです'));
  expect(said()).toEqual([FOREIGN_SCRIPT]);
});
