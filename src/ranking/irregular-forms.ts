/**
 * English words whose forms share no stem: each line holds the base and its other forms. People ask "when did she
 * run" about "she ran". Left out: forms that are more often another word (left, saw, lay, rose, ground, wound, bore).
 */
const FAMILIES = `become became|begin began begun|bend bent|bite bit bitten|bleed bled|blow blew blown|break broke broken
breed bred|bring brought|build built|burn burnt|buy bought|catch caught|choose chose chosen|come came|cling clung
creep crept|deal dealt|dig dug|draw drew drawn|dream dreamt|drink drank drunk|drive drove driven|eat ate eaten
fall fell fallen|feed fed|feel felt|fight fought|find found|fly flew flown|forget forgot forgotten
forgive forgave forgiven|freeze froze frozen|give gave given|go goes went gone|grow grew grown|hang hung|hear heard
hold held|keep kept|kneel knelt|know knew known|lead led|lean leant|learn learnt|leap leapt|lend lent|light lit
lose lost|make made|mean meant|meet met|pay paid|ride rode ridden|ring rang rung|rise risen|run ran|say said
see seen|seek sought|sell sold|send sent|sew sewn|shake shook shaken|shine shone|shoot shot|show shown
shrink shrank shrunk|sing sang sung|sink sank sunk|sit sat|sleep slept|slide slid|speak spoke spoken|spell spelt
spend spent|spill spilt|spin spun|stand stood|steal stole stolen|stick stuck|sting stung|strike struck|swear swore sworn
sweep swept|swim swam swum|swing swung|take took taken|teach taught|tear tore torn|tell told|think thought
throw threw thrown|understand understood|wake woke woken|wear wore worn|weep wept|win won|write wrote written
child children|foot feet|goose geese|knife knives|man men|mouse mice|shelf shelves|tooth teeth|wife wives
wolf wolves|woman women`;

export const BASE_FORMS: ReadonlyMap<string, string> = new Map(
  FAMILIES.split(/\n|\|/).flatMap((family) => {
    const [base = '', ...forms] = family.trim().split(' ');
    return forms.map((form): [string, string] => [form, base]);
  }),
);
