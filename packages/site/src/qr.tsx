import { useMemo } from 'preact/hooks'
import { encode } from 'uqr'

/** Modules of white around the code, as ISO/IEC 18004 wants. */
const QUIET_ZONE = 4

/**
 * A QR code at level M, dark on white whatever the page's colours are: many readers know no other.
 */
export function QrCode({ text, label }: { text: string; label: string }) {
  const { path, size } = useMemo(() => {
    const { data, size } = encode(text, { ecc: 'M', border: QUIET_ZONE })
    const runs: string[] = []
    for (const [y, row] of data.entries()) {
      for (let x = 0; x < size; x++) {
        const start = x
        while (row[x]) x++
        if (x > start) runs.push(`M${start} ${y}h${x - start}v1H${start}z`)
      }
    }
    return { path: runs.join(''), size }
  }, [text])
  return (
    <svg
      class="qr"
      role="img"
      aria-label={label}
      viewBox={`0 0 ${size} ${size}`}
      shape-rendering="crispEdges"
    >
      <rect width={size} height={size} fill="#ffffff" />
      <path d={path} fill="#000000" />
    </svg>
  )
}
