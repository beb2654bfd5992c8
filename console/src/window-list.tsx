import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

/** Frames until a row must be drawn, or the focus stays where it is. */
const MAX_FRAMES = 10;
/** Rows outside of the window that are drawn, so that a fast scroll shows no gaps. */
const MARGIN = 8;

interface WindowListProps {
  readonly label: string;
  /** Rows that are there. */
  readonly count: number;
  readonly row: (index: number) => ComponentChildren;
  /** Whether there are more rows to load when the end comes near. */
  readonly more: boolean;
  readonly onNearEnd: () => void;
}

/** A list of any length, of which only the rows in sight are in the page. */
export function WindowList({ label, count, row, more, onNearEnd }: WindowListProps) {
  const frame = useRef<HTMLDivElement>(null);
  const [{ top, height, row: tall }, setWindow] = useState({ top: 0, height: 0, row: Number.POSITIVE_INFINITY });
  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    let row = 0;
    const measure = () => setWindow({ top: element.scrollTop, height: element.clientHeight, row });
    const observer = new ResizeObserver(() => {
      row = heightOfRow(element);
      measure();
    });
    observer.observe(element);
    element.addEventListener('scroll', measure, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener('scroll', measure);
    };
  }, []);
  const first = Math.max(0, Math.floor(top / tall) - MARGIN);
  const last = Math.min(count, Math.ceil((top + height) / tall) + MARGIN);
  useEffect(() => {
    if (more && height > 0 && last >= count - MARGIN) onNearEnd();
  });
  return (
    <div class="window" ref={frame} tabIndex={-1}>
      {/* biome-ignore lint/a11y/noRedundantRoles: without bullets, Safari takes away the role */}
      <ul role="list" aria-label={label} style={{ height: `calc(${count} * var(--row))` }}>
        {Array.from({ length: Math.max(0, last - first) }, (_, i) => row(first + i))}
      </ul>
    </div>
  );
}

/** Height of a row in CSS pixels, as the style sheet says. */
const heightOfRow = (frame: Element): number => Number.parseFloat(getComputedStyle(frame).getPropertyValue('--row'));

/** Where a row of the list stands, and what a screen reader says of its place. */
export const placeOf = (index: number, count: number, more: boolean) => ({
  style: { transform: `translateY(calc(${index} * var(--row)))` },
  'aria-posinset': index + 1,
  'aria-setsize': more ? -1 : count,
});

/** Moves the focus to the row at this index, and scrolls it into sight. */
export function focusRow(list: Element, index: number): void {
  const frame = list.closest<HTMLElement>('.window');
  if (!frame) return;
  const row = heightOfRow(frame);
  const top = index * row;
  if (top < frame.scrollTop) frame.scrollTop = top;
  else if (top + row > frame.scrollTop + frame.clientHeight) frame.scrollTop = top + row - frame.clientHeight;
  // The row is drawn only after the scroll.
  const focus = (frames: number) =>
    requestAnimationFrame(() => {
      const drawn = frame.querySelector<HTMLElement>(`[data-row="${index}"]`);
      if (drawn) drawn.focus();
      else if (frames > 1) focus(frames - 1);
    });
  focus(MAX_FRAMES);
}
