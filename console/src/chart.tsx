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

interface Line {
  readonly name: string;
  /** Undefined: a gap. */
  readonly values: readonly (number | undefined)[];
}

/** Lines over time, one point for each moment. Each has a pattern of its own; the legend has its last value. */
export function Lines({ title, lines, show }: { title: string; lines: readonly Line[]; show(value: number): string }) {
  const known = lines.flatMap(({ values }) => values.filter((value) => value !== undefined));
  const most = Math.max(...known, 0) || 1;
  const last = Math.max(1, ...lines.map(({ values }) => values.length - 1));
  const path = ({ values }: Line) =>
    values
      .map((value, n) => {
        if (value === undefined) return '';
        const begins = values[n - 1] === undefined;
        return `${begins ? 'M' : 'L'}${(WIDTH * n) / last} ${HEIGHT - (HEIGHT * value) / most}${begins ? 'h1' : ''}`;
      })
      .join('');
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        {lines.map((line, n) => (
          <path key={line.name} class={`line${n}`} d={path(line)} />
        ))}
      </svg>
      <div class="axis">
        {lines.map(({ name, values }, n) => {
          const value = values.findLast((one) => one !== undefined);
          return (
            <span key={name}>
              <svg class="line-of" viewBox="0 0 24 24" aria-hidden="true">
                <path class={`line${n}`} d="M0 12H24" />
              </svg>{' '}
              {name}: {value === undefined ? 'nothing yet' : show(value)}
            </span>
          );
        })}
        <span>at most {known.length > 0 ? show(Math.max(...known)) : show(0)}</span>
      </div>
    </figure>
  );
}
