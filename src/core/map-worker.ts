import { answerQuestions } from '#ranking';
import { project } from './projection.ts';

answerQuestions(project);
