import { feature } from '../feature.ts';
import { createWebhook, deleteWebhook, listWebhooks, resumeWebhook, rotateWebhook, testWebhook } from './verbs.ts';

export const webhooks = feature({
  verbs: {
    list_webhooks: listWebhooks,
    create_webhook: createWebhook,
    delete_webhook: deleteWebhook,
    test_webhook: testWebhook,
    resume_webhook: resumeWebhook,
    rotate_webhook: rotateWebhook,
  },
});
