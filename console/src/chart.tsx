import type { ComponentChildren } from 'preact';

const [WIDTH, HEIGHT] = [600, 120];
/** The ends of the axis, as multiples of a power of ten: half of each is round too. */
const ROUND = [1, 2, 4, 6, 8, 10];

function roundUp(most: number): number {
  const power = 10 ** Math.floor(Math.log10(most || 1));
  return power * (ROUND.find((step) => step * power >= most) ?? 10);
}

interface FrameProps {
  readonly title: string;
  /** The end of the axis. */
  readonly most: number;
  readonly show: (value: number) => string;
  /** What stands below the first and the last point. */
  readonly ends: readonly [ComponentChildren, ComponentChildren];
  /** What is drawn. */
  readonly children: ComponentChildren;
  /** What stands below: a legend, a table of the same numbers. */
  readonly below?: ComponentChildren;
}

function Frame({ title, most, show, ends, children, below }: FrameProps) {
  const ticks = [most, ...(most === 1 ? [] : [most / 2]), 0];
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      <div class="plot">
        <div class="ticks">
          {ticks.map((tick) => (
            <span key={tick}>{show(tick)}</span>
          ))}
        </div>
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
          <path class="grid" d={`M0 0H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT}H${WIDTH}`} />
          {children}
        </svg>
      </div>
      <div class="axis">
        <span>{ends[0]}</span>
        <span>{ends[1]}</span>
      </div>
      {below}
    </figure>
  );
}

/** One column of a chart. */
interface Bar {
  readonly label: string;
  readonly value: number;
}

/** Columns, with the first and the last label below. The table has the same numbers. */
export function Bars({ title, bars }: { title: string; bars: readonly Bar[] }) {
  const most = roundUp(Math.max(1, ...bars.map(({ value }) => value)));
  const wide = WIDTH / bars.length;
  const table = (
    <details>
      <summary>As a table</summary>
      <table>
        <tbody>
          {bars
            .filter(({ value }) => value > 0)
            .map(({ label, value }) => (
              <tr key={label}>
                <th scope="row">{label}</th>
                <td class="number">{value}</td>
              </tr>
            ))}
        </tbody>
      </table>
    </details>
  );
  return (
    <Frame title={title} most={most} show={String} ends={[bars[0]?.label, bars.at(-1)?.label]} below={table}>
      {bars.map(({ label, value }, n) => {
        const tall = (HEIGHT * value) / most;
        return (
          <rect key={label} x={(n + 0.1) * wide} y={HEIGHT - tall} width={0.8 * wide} height={tall}>
            <title>
              {label}: {value}
            </title>
          </rect>
        );
      })}
    </Frame>
  );
}

interface Line {
  readonly name: string;
  /** Undefined: a gap. */
  readonly values: readonly (number | undefined)[];
}

interface LinesProps {
  readonly title: string;
  readonly lines: readonly Line[];
  readonly show: (value: number) => string;
  readonly ends: FrameProps['ends'];
}

/** Lines over time, one point for each moment. Each has a pattern of its own; the legend has its last value. */
export function Lines({ title, lines, show, ends }: LinesProps) {
  const most = roundUp(Math.max(...lines.flatMap(({ values }) => values.map((value) => value ?? 0)), 0));
  const last = Math.max(1, ...lines.map(({ values }) => values.length - 1));
  const at = (value: number, n: number) => `${(WIDTH * n) / last} ${HEIGHT - (HEIGHT * value) / most}`;
  const path = ({ values }: Line) =>
    values
      .map((value, n) => {
        if (value === undefined) return '';
        const begins = values[n - 1] === undefined;
        return `${begins ? 'M' : 'L'}${at(value, n)}${begins ? 'h1' : ''}`;
      })
      .join('');
  const legend = (
    <ul class="series">
      {lines.map(({ name, values }, n) => {
        const value = values.findLast((one) => one !== undefined);
        return (
          <li key={name}>
            <svg class="line-of" viewBox="0 0 24 24" aria-hidden="true">
              <path class={`line${n}`} d="M0 12H24" />
            </svg>{' '}
            {name}: {value === undefined ? 'nothing yet' : show(value)}
          </li>
        );
      })}
    </ul>
  );
  return (
    <Frame {...{ title, most, show, ends }} below={legend}>
      {lines.map((line, n) => (
        <path key={line.name} class={`line${n}`} d={path(line)} />
      ))}
    </Frame>
  );
}
