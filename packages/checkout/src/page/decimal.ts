/** Returns the exact difference of two decimals, without trailing zeros. */
export function subtract(minuend: string, subtrahend: string): string {
  const scale = Math.max(...[minuend, subtrahend].map((text) => (text.split('.')[1] ?? '').length))
  const whole = (text: string): bigint => {
    const [units, parts = ''] = text.split('.')
    return BigInt(units + parts.padEnd(scale, '0'))
  }
  const difference = whole(minuend) - whole(subtrahend)
  const digits = String(difference < 0n ? -difference : difference).padStart(scale + 1, '0')
  const text =
    scale === 0
      ? digits
      : `${digits.slice(0, -scale)}.${digits.slice(-scale)}`.replace(/\.?0+$/, '')
  return difference < 0n ? `-${text}` : text
}
