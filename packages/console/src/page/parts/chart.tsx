import { useEffect, useRef, useState } from 'preact/hooks'
import type { Series } from '../api/types.ts'
import { theme } from '../theme.ts'
import { amountText, usd } from '../amounts.ts'

const HEIGHT_PX = 180
const colour = (name: string) =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim()

/** A value over time. Screen readers get the first, last, highest and lowest value. */
export function Chart({
  series,
  label,
  kind = 'line',
}: {
  series: Series
  label: string
  kind?: 'line' | 'bars'
}) {
  const holder = useRef<HTMLDivElement>(null)
  const [isReady, setReady] = useState(false)
  const chosen = theme.value
  useEffect(() => {
    const element = holder.current
    if (element === null) return
    let stop = () => undefined as void
    let isGone = false
    void import('./chart.ts').then(({ drawChart }) => {
      if (isGone) return
      stop = drawChart(element, series, {
        kind,
        height: HEIGHT_PX,
        line: colour('--info'),
        grid: colour('--line'),
        text: colour('--muted'),
      })
      setReady(true)
    })
    return () => {
      isGone = true
      stop()
    }
  }, [series, kind, chosen])
  const byValue = series.points.toSorted((one, other) => Number(one.value) - Number(other.value))
  const show = (point: Series['points'][number] | undefined) =>
    point === undefined
      ? 'nothing'
      : series.unit === 'USD'
        ? usd(point.value)
        : `${amountText(point.value)} ${series.unit}`
  const ends = `from ${show(series.points[0])} to ${show(series.points.at(-1))}`
  const summary = `${label}: ${ends}, between ${show(byValue[0])} and ${show(byValue.at(-1))}`
  return (
    <div
      class={`chart${isReady ? '' : ' is-waiting'}`}
      role="img"
      aria-label={summary}
      ref={holder}
    />
  )
}
