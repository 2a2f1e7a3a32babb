import { useEffect, useRef, useState } from 'preact/hooks'
import type { Series } from '../api/types.ts'
import { theme } from '../theme.ts'
import { usd } from './show.tsx'

const HEIGHT_PX = 180
const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

/** A figure over time. Those who do not see it get the first, the last, the highest and the lowest. */
export function Chart({ series, label, kind = 'line' }: { series: Series; label: string; kind?: 'line' | 'bars' }) {
  const holder = useRef<HTMLDivElement>(null)
  const [isReady, setReady] = useState(false)
  const chosen = theme.value
  useEffect(() => {
    const element = holder.current
    if (element === null) return
    let stop = () => undefined as void
    let isGone = false
    void import('./plot.ts').then(({ plot }) => {
      if (isGone) return
      stop = plot(element, series, { kind, height: HEIGHT_PX, line: colour('--info'), grid: colour('--line'), text: colour('--muted') })
      setReady(true)
    })
    return () => {
      isGone = true
      stop()
    }
  }, [series, kind, chosen])
  const values = series.points.map(({ value }) => Number(value))
  const show = (value: number | undefined) =>
    value === undefined ? 'nothing' : series.unit === 'USD' ? usd(value.toFixed(2)) : `${value} ${series.unit}`
  const ends = `from ${show(values[0])} to ${show(values.at(-1))}`
  const told = `${label}: ${ends}, between ${show(Math.min(...values))} and ${show(Math.max(...values))}`
  return <div class={`chart${isReady ? '' : ' is-waiting'}`} role="img" aria-label={told} ref={holder} />
}
