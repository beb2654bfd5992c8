/** One column of a chart. */
interface Bar {
  readonly label: string;
  readonly value: number;
}

const [WIDTH, HEIGHT] = [600, 120];

/** Columns, with the first and the last label below. The table has the same numbers. */
export function Bars({ title, bars }: { title: string; bars: readonly Bar[] }) {
  const most = Math.max(1, ...bars.map(({ value }) => value));
  const wide = WIDTH / bars.length;
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        {bars.map(({ label, value }, n) => {
          const tall = (HEIGHT * value) / most;
          return (
            <rect key={label} x={n * wide} y={HEIGHT - tall} width={0.8 * wide} height={tall}>
              <title>
                {label}: {value}
              </title>
            </rect>
          );
        })}
      </svg>
      <div class="axis">
        <span>{bars[0]?.label}</span>
        <span>at most {most}</span>
        <span>{bars.at(-1)?.label}</span>
      </div>
      <details>
        <summary>As a table</summary>
        <table>
          <tbody>
            {bars
              .filter(({ value }) => value > 0)
              .map(({ label, value }) => (
                <tr key={label}>
                  <th scope="row">{label}</th>
                  <td>{value}</td>
                </tr>
              ))}
          </tbody>
        </table>
      </details>
    </figure>
  );
}
