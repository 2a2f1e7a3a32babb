// Loads uPlot when a chart is drawn.
import UPlot from 'uplot'
import { amountText, usd } from '../amounts.ts'
import type { Series } from '../api/types.ts'

interface Look {
  kind: 'line' | 'bars'
  height: number
  line: string
  grid: string
  text: string
}

/** Format of the axis labels, whose few digits are never rounded. */
const SHORT = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 9 })

/** Returns the axes: days in UTC, and compact values with the unit's sign. */
function axesOf(unit: string, { grid, text }: Look): UPlot.Axis[] {
  const axis = {
    stroke: text,
    size: 28,
    font: '12px system-ui, sans-serif',
    grid: { stroke: grid, width: 1 },
    ticks: { show: false },
  }
  const sign = unit === 'USD' ? '$' : ''
  return [
    {
      ...axis,
      grid: { show: false },
      space: 70,
      values: (_chart, times) =>
        times.map((time) =>
          new Date(time * 1000).toLocaleDateString('en-GB', {
            day: 'numeric',
            month: 'short',
            timeZone: 'UTC',
          }),
        ),
    },
    {
      ...axis,
      size: 52,
      space: 44,
      values: (_chart, values) => values.map((value) => `${sign}${SHORT.format(value)}`),
    },
  ]
}

/**
 * Returns the columns of the legend, which shows the day and the exact value at the cursor, or the
 * last ones.
 */
function columnsOf(series: Series, { kind, line }: Look): UPlot.Series[] {
  const pointAt = (at: number | null) => (at === null ? series.points.at(-1) : series.points[at])
  const shown = (point: Series['points'][number] | undefined) =>
    point === undefined ? '–' : series.unit === 'USD' ? usd(point.value) : amountText(point.value)
  const bars =
    kind === 'bars' && UPlot.paths.bars
      ? { paths: UPlot.paths.bars({ size: [0.6, 40], radius: 0.15 }), points: { show: false } }
      : { points: { show: false } }
  return [
    {
      label: 'Day',
      value: (_chart, _time, _series, at) => {
        const point = pointAt(at)
        return point === undefined ? '–' : new Date(point.at).toUTCString().slice(5, 16)
      },
    },
    {
      label: series.unit,
      stroke: line,
      width: kind === 'bars' ? 0 : 2,
      fill: `${line}${kind === 'bars' ? 'cc' : '1f'}`,
      ...bars,
      // The line is drawn with floating-point numbers, but the displayed value is exact.
      value: (_chart, _value, _series, at) => shown(pointAt(at)),
    },
  ]
}

/**
 * Draws a series into an element with the element's width.
 * @returns a function that removes it
 */
export function drawChart(element: HTMLElement, series: Series, look: Look): () => void {
  const { kind, height } = look
  const data: UPlot.AlignedData = [
    series.points.map(({ at }) => Date.parse(at) / 1000),
    series.points.map(({ value }) => Number(value)),
  ]
  const chart = new UPlot(
    {
      width: Math.max(element.clientWidth, 200),
      height,
      tzDate: (seconds) => UPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
      cursor: { y: false, points: { size: 6 } },
      padding: [8, 8, 0, 0],
      legend: { live: true },
      // Leaves a margin of half a bar at either end.
      scales: {
        x: {
          range: (_chart, low, high) =>
            kind === 'bars' ? [low - 43_200, high + 43_200] : [low, high],
        },
        y: { range: (_chart, low, high) => [Math.min(0, low), high <= 0 ? 1 : high * 1.08] },
      },
      axes: axesOf(series.unit, look),
      series: columnsOf(series, look),
    },
    data,
    element,
  )
  const sizes = new ResizeObserver(() =>
    chart.setSize({ width: Math.max(element.clientWidth, 200), height }),
  )
  sizes.observe(element)
  return () => {
    sizes.disconnect()
    chart.destroy()
  }
}
