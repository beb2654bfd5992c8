import type { ComponentChildren, RefObject } from 'preact';
import { useId, useRef, useState } from 'preact/hooks';
import { Icon, type IconName } from './icon.tsx';

/** As `ref`, moves the focus to what appears. The attribute `autofocus` counts only once, and not while a button has the focus. */
export const focus = (element: HTMLElement | null): void => element?.focus();

interface TitleProps {
  readonly text: ComponentChildren;
  /** What the page is for. */
  readonly about?: ComponentChildren;
  /** The main action of the page, and others. */
  readonly children?: ComponentChildren;
}

/** The head of a page. */
export const Title = ({ text, about, children }: TitleProps) => (
  <header class="title">
    <div>
      <h1 dir="auto">{text}</h1>
      {about && <p>{about}</p>}
    </div>
    {children}
  </header>
);

interface NewButtonProps {
  readonly text: string;
  /** Whether the form is there. */
  readonly isOpen: boolean;
  readonly onClick: () => void;
}

/** Opens the form for one more. */
export const NewButton = ({ text, isOpen, onClick }: NewButtonProps) => (
  <button type="button" class="main" aria-expanded={isOpen} onClick={onClick}>
    <Icon name="add" />
    {text}
  </button>
);

interface EmptyProps {
  readonly icon: IconName;
  readonly title: ComponentChildren;
  /** Of a page; else it stands within one. */
  readonly isPage?: boolean;
  /** Why there is nothing, and what to do. */
  readonly children?: ComponentChildren;
}

/** Stands where there is nothing. */
export const Empty = ({ icon, title, isPage = false, children }: EmptyProps) => (
  <div class="empty">
    <Icon name={icon} />
    {isPage ? <h1>{title}</h1> : <h2>{title}</h2>}
    {children}
  </div>
);

/** What may be wider than the window scrolls by itself. */
export const Wide = ({
  label,
  focus,
  children,
}: {
  label: string;
  focus?: RefObject<HTMLElement | null> | undefined;
  children: ComponentChildren;
}) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls sideways, which the keyboard must be able to do
  <section class="wide" tabIndex={0} aria-label={label} ref={focus}>
    {children}
  </section>
);

export interface Column<Row> {
  readonly name: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** What the column is sorted by; undefined: it is not. */
  readonly by?: (row: Row) => string | number | null | undefined;
  readonly isNumber?: boolean;
}

interface TableProps<Row> {
  readonly label: string;
  readonly rows: readonly Row[];
  /** The first one names the row. */
  readonly columns: readonly Column<Row>[];
  readonly className?: (row: Row) => string;
  /** The table, to move the focus there. */
  readonly focus?: RefObject<HTMLElement | null>;
}

/** A table that is sorted by a press on the head of a column: once upwards, twice downwards, then as it was. */
export function Table<Row>({ label, rows, columns, className, focus }: TableProps<Row>) {
  const [[sorted, order], sort] = useState<readonly [number, -1 | 0 | 1]>([0, 0]);
  const by = columns[sorted]?.by;
  const shown = order === 0 || !by ? rows : rows.toSorted((a, b) => order * compare(by(a), by(b)));
  const press = (n: number) => sort(n !== sorted || order === 0 ? [n, 1] : [n, order === 1 ? -1 : 0]);
  const sides = { [-1]: 'descending', 0: undefined, 1: 'ascending' } as const;
  return (
    <Wide label={label} focus={focus}>
      <table>
        <thead>
          <tr>
            {columns.map(({ name, by, isNumber }, n) => (
              <th key={name} class={isNumber ? 'number' : ''} aria-sort={n === sorted ? sides[order] : undefined}>
                {by ? (
                  <button type="button" onClick={() => press(n)}>
                    {name}
                    <Icon name="down" />
                  </button>
                ) : (
                  name
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((row, n) => (
            <tr key={n} class={className?.(row)}>
              {columns.map(({ name, cell, isNumber }, place) =>
                place === 0 ? (
                  <th key={name} scope="row">
                    {cell(row)}
                  </th>
                ) : (
                  <td key={name} class={isNumber ? 'number' : ''}>
                    {cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </Wide>
  );
}

function compare(a: string | number | null | undefined, b: string | number | null | undefined): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return String(a ?? '').localeCompare(String(b ?? ''), undefined, { numeric: true });
}

export interface MenuItem {
  readonly text: string;
  readonly icon: IconName;
  readonly run: () => void;
}

/** Room between a menu and its button, or the side of the window, in pixels. */
const GAP = 4;

/** A button that opens more actions. */
export function Menu({ label, items }: { label: string; items: readonly MenuItem[] }) {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const menu = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState(false);
  const place = (opened: boolean) => {
    setOpen(opened);
    if (!opened || !button.current || !menu.current) return;
    const { left, right, top, bottom } = button.current.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = menu.current;
    menu.current.style.left = `${Math.max(GAP, right > width ? right - width : left)}px`;
    menu.current.style.top = `${bottom + height > innerHeight ? Math.max(GAP, top - height - GAP) : bottom + GAP}px`;
  };
  return (
    <>
      <button ref={button} type="button" class="quiet" popovertarget={id} aria-label={label} aria-expanded={open}>
        <Icon name="more" />
      </button>
      <div ref={menu} id={id} class="menu-of" popover="auto" onToggle={(event) => place(event.newState === 'open')}>
        {items.map(({ text, icon, run }) => (
          <button
            key={text}
            type="button"
            class="quiet"
            onClick={() => {
              menu.current?.hidePopover();
              run();
            }}
          >
            <Icon name={icon} />
            {text}
          </button>
        ))}
      </div>
    </>
  );
}
