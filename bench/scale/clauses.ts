import { pick, pickSkewed, type Random } from './random.ts';

/** Words that fill the slots of a clause, common ones first. */
const WORDS: Readonly<Record<string, readonly string[]>> = {
  person:
    lines(`his wife|her husband|the manager|a colleague|his sister|her brother|the landlord|a neighbour|the dentist
    the accountant|their daughter|their son|an old friend|the therapist|her mentor|the plumber|his grandmother|a cousin
    the lawyer|the physiotherapist|her tutor|the vet|his godson|the babysitter`),
  food: lines(`coffee|pasta|green tea|sushi|fresh bread|pizza|dark chocolate|salad|oat milk|curry|ramen|cheese|tofu
    lentil soup|mango|hummus|dumplings|porridge|grilled fish|rhubarb cake|kimchi|olives|peanut butter|paella|pickled beetroot
    tempeh|gnocchi|buckwheat pancakes|falafel|elderflower cordial`),
  place:
    lines(`London|Berlin|the office|Lisbon|Paris|Vienna|the mountains|Barcelona|Amsterdam|Tokyo|the lake house|Leeds
    Copenhagen|Prague|Edinburgh|Krakow|Porto|Toronto|the coworking space|Zurich|Nairobi|Montevideo|Ljubljana|Reykjavik
    Valparaiso|Tbilisi`),
  tool: lines(`typescript|python|postgres|docker|the terminal|git|react|spreadsheets|vim|kubernetes|pnpm|notebooks|redis
    figma|rust|terraform|emacs|jupyter|tailwind|grafana|elixir|kafka|blender|ansible|clickhouse|svelte|haskell|bazel`),
  hobby:
    lines(`running|yoga|photography|chess|cycling|gardening|climbing|reading|swimming|cooking|guitar|painting|hiking
    tennis|pottery|sailing|knitting|birdwatching|salsa dancing|woodworking|fencing|beekeeping|origami|astronomy|rowing
    calligraphy|stand-up comedy|foraging`),
  day: lines(`Monday|Friday|the weekend|Tuesday morning|Thursday evening|Wednesday|Saturday|Sunday afternoon|the first of the month
    every other week|March|September|late summer|the winter break|Easter|November`),
  health: lines(`headaches|hay fever|a bad knee|back pain|a peanut allergy|asthma|insomnia|lactose intolerance|migraine
    high blood pressure|a shoulder injury|eczema|anaemia|tinnitus|coeliac disease|a penicillin allergy|vertigo|plantar fasciitis`),
  thing: lines(`laptop|phone|bicycle|car|headphones|camera|keyboard|sofa|passport|monitor|backpack|piano|telescope|drone
    coffee machine|standing desk|electric scooter|tent|sewing machine|record player|kayak|violin|3d printer`),
  style:
    lines(`short answers|bullet points|concrete examples|metric units|dark mode|british spelling|a formal tone|tables
    code without comments|step by step explanations|quiet reminders|plain language|citations|24 hour times|one question at a time`),
  work: lines(`the budget|the release|a presentation|the migration|hiring|the roadmap|an invoice|the onboarding guide
    a security review|the annual report|the contract|a grant proposal|the tax return|an incident report|the warehouse audit
    a patent filing|the design system|a usability study|payroll|the works council`),
};

/** The statement in each half of a memory, and the question for it. */
const TEMPLATES: readonly (readonly [clause: string, question: string])[] = [
  ['user prefers {food} for breakfast', 'what does the user eat for breakfast'],
  ['user likes {food} but avoids {food}', 'does the user like {food}'],
  ['user is working on {work} with {person}', 'who helps with {work}'],
  ['user works with {tool} at the office', 'does the user know {tool}'],
  ['prefers {tool} over {tool} for new projects', 'which does the user prefer, {tool} or {tool}'],
  ['user has a meeting about {work} on {day}', 'when is the meeting about {work}'],
  ['user lives near {place}', 'where does the user live'],
  ['user is planning a trip to {place} in {day}', 'is a trip to {place} planned'],
  ['user moved from {place} to {place}', 'did the user ever live in {place}'],
  ['user goes {hobby} with {person} on {day}', 'who does the user go {hobby} with'],
  ['user started {hobby} last year', 'when did the user start {hobby}'],
  ['user wants to get better at {hobby}', 'what hobby does the user want to improve'],
  ['user suffers from {health}', 'any health problems such as {health}'],
  ['{person} suffers from {health}', 'does {person} have {health}'],
  ['user takes medication for {health} since {day}', 'medication for {health}'],
  ['user bought a new {thing} in {day}', 'when was the {thing} bought'],
  ['the {thing} of the user is broken', 'what happened to the {thing}'],
  ['user lent the {thing} to {person}', 'who has the {thing} now'],
  ['user prefers {style} in answers', 'how should answers be written'],
  ['user asked for {style} when discussing {work}', 'does the user want {style}'],
  ['{person} lives in {place}', 'where does {person} live'],
  ['{person} visits on {day}', 'when does {person} visit'],
  ['user has dinner with {person} at a {food} place in {place}', 'dinner with {person}'],
  ['user deploys {tool} from {place}', 'where is {tool} deployed'],
  ['deadline for {work} is {day}', 'deadline of {work}'],
  ['user is learning {tool} for {work}', 'why does the user learn {tool}'],
  ['user gave {person} a {thing} as a present', 'what present did {person} get'],
  ['user remembers {hobby} in {place} fondly', 'memories of {hobby} in {place}'],
];

const PLACE = /\{(\w+)\}/g;

/** `count` different clauses. */
export function makeClauses(random: Random, count: number): string[] {
  const clauses = new Set<string>();
  while (clauses.size < count) clauses.add(fill(random, pickSkewed(random, TEMPLATES)[0]));
  return [...clauses];
}

/** `count` different questions about clauses, with the same mix of common and rare words. */
export function makeQuestions(random: Random, count: number): string[] {
  const questions = new Set<string>();
  while (questions.size < count) questions.add(fill(random, pick(random, TEMPLATES)[1]));
  return [...questions];
}

const fill = (random: Random, template: string): string =>
  template.replace(PLACE, (_, kind: string) => pickSkewed(random, WORDS[kind] as readonly string[]));

function lines(text: string): string[] {
  return text.split(/[|\n]/).map((word) => word.trim());
}
