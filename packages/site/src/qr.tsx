import { useMemo } from 'preact/hooks'
import { encode } from 'uqr'

/** Width in modules of the white border around the code, as required by ISO/IEC 18004. */
const QUIET_ZONE = 4

/**
 * A QR code at level M, always dark on white, because many readers do not support other colours.
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
