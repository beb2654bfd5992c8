import { DELIVERY_OUTCOMES } from '#contract';
import type { ServiceKey } from '../../core/services.ts';
import { feature } from '../feature.ts';
import { WEBHOOKS } from './interface.ts';
import { createWebhook, deleteWebhook, listWebhooks, resumeWebhook, rotateWebhook, testWebhook } from './verbs.ts';
import { deliveryOptions, type GatewayWebhooks, openWebhooks, type WebhookSettings } from './webhooks.ts';

const NO_WEBHOOKS =
  'OMP_WEBHOOK_SECRET has no effect: this store keeps no webhooks; they need the tables of this gateway in Postgres, or the memory provider';

export const webhooks = feature({
  verbs: {
    list_webhooks: listWebhooks,
    create_webhook: createWebhook,
    delete_webhook: deleteWebhook,
    test_webhook: testWebhook,
    resume_webhook: resumeWebhook,
    rotate_webhook: rotateWebhook,
  },
  service: {
    key: WEBHOOKS as ServiceKey<GatewayWebhooks>,
    hides: 'webhooks',
    open(settings: WebhookSettings, { store, log }) {
      const options = deliveryOptions(settings);
      const opened = options && openWebhooks(options, store, log);
      if (options && !opened) log.warn({}, NO_WEBHOOKS);
      return opened;
    },
    start: (service, { feed }) => service.start(feed),
  },
  metrics: (_, service) =>
    service
      ? [
          {
            kind: 'counter',
            name: 'omp_webhook_deliveries_total',
            help: 'Attempts to deliver changes to webhooks, by outcome.',
            labels: ['outcome'],
            read() {
              const { deliveries } = service.stats();
              return DELIVERY_OUTCOMES.map((outcome) => ({ value: deliveries[outcome] ?? 0, labels: { outcome } }));
            },
          },
          {
            kind: 'gauge',
            name: 'omp_webhook_lag_seconds',
            help: 'Age of the oldest change that was not delivered to a webhook; 0: none.',
            read: () => [{ value: service.stats().lag }],
          },
        ]
      : [],
});
