import { Failure, useLoad } from './load.tsx';
import { useSession } from './session.ts';

/** Whether the gateway works, and what it can do. */
export function Health() {
  const { client, capabilities } = useSession();
  const { data, error, reload } = useLoad('', (signal) => client.health({ signal, retries: 0 }));
  const { omp_version, provider, verbs, features, limits } = capabilities;
  const rows: [string, unknown][] = [
    ['Protocol', omp_version],
    ['Backend', provider],
    ['Verbs', verbs.join(', ')],
    ...Object.entries(features),
    ...Object.entries(limits ?? {}),
  ];
  return (
    <>
      <h1>Health</h1>
      {data && <p class="good">The gateway runs, and its backend answers.</p>}
      {error !== undefined && <Failure error={error} retry={reload} />}
      <h2>What this gateway can do</h2>
      <div class="wide">
        <table>
          <tbody>
            {rows.map(([name, value]) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td>
                  {value === null ? 'no limit' : typeof value === 'boolean' ? (value ? 'yes' : 'no') : String(value)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p>
        Latency, throughput, breakers and queues: <code>/metrics</code> on the port OMP_METRICS_PORT. The HTTP
        interface: <a href="../docs">/docs</a>.
      </p>
    </>
  );
}
