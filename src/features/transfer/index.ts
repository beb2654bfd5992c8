import { feature } from '../feature.ts';
import { exportMemories, importMemories } from './export.ts';
import { personFile } from './person.ts';

export const transfer = feature({ verbs: { person_file: personFile, export: exportMemories, import: importMemories } });
