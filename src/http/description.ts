import { Hono } from 'hono';
import type { Env } from './call.ts';

export const descriptionRoutes = (): Hono<Env> => new Hono<Env>();
