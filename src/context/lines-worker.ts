import { answerQuestions } from '#ranking';
import { linesWithin } from './lines.ts';

answerQuestions(linesWithin);
