import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

/** Height of a row in CSS pixels; the style sheet has the same. */
const ROW = 72;
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
  const [[top, height], setWindow] = useState<readonly [number, number]>([0, 0]);
  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    const measure = () => setWindow([element.scrollTop, element.clientHeight]);
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener('scroll', measure, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener('scroll', measure);
    };
  }, []);
  const first = Math.max(0, Math.floor(top / ROW) - MARGIN);
  const last = Math.min(count, Math.ceil((top + height) / ROW) + MARGIN);
  useEffect(() => {
    if (more && height > 0 && last >= count - MARGIN) onNearEnd();
  });
  return (
    <div class="window" ref={frame} tabIndex={-1}>
      {/* biome-ignore lint/a11y/noRedundantRoles: without bullets, Safari takes away the role */}
      <ul role="list" aria-label={label} style={{ height: `${count * ROW}px` }}>
        {Array.from({ length: Math.max(0, last - first) }, (_, i) => row(first + i))}
      </ul>
    </div>
  );
}

/** Where a row of the list stands, and what a screen reader says of its place. */
export const placeOf = (index: number, count: number, more: boolean) => ({
  style: { transform: `translateY(${index * ROW}px)` },
  'aria-posinset': index + 1,
  'aria-setsize': more ? -1 : count,
});

/** Moves the focus to the row at this index, and scrolls it into sight. */
export function focusRow(list: Element, index: number): void {
  const frame = list.closest<HTMLElement>('.window');
  if (!frame) return;
  const top = index * ROW;
  if (top < frame.scrollTop) frame.scrollTop = top;
  else if (top + ROW > frame.scrollTop + frame.clientHeight) frame.scrollTop = top + ROW - frame.clientHeight;
  // The row is drawn only after the scroll.
  const focus = (frames: number) =>
    requestAnimationFrame(() => {
      const row = frame.querySelector<HTMLElement>(`[data-row="${index}"]`);
      if (row) row.focus();
      else if (frames > 1) focus(frames - 1);
    });
  focus(MAX_FRAMES);
}
