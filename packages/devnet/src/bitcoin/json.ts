import { formatAmount } from '../amount.ts'

/** Satoshi that appear in JSON as a number with exactly 8 decimals, as in Core's responses. */
class Btc {
  readonly value: bigint

  constructor(value: bigint) {
    this.value = value
  }
}

/** A number that is already formatted as text. */
export class Literal {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

export function btc(value: bigint): Btc {
  return new Btc(value)
}

/** Works like JSON.stringify, but writes amounts with all digits, which a float would lose. */
export function toJson(value: unknown): string {
  if (value instanceof Btc) return formatAmount(value.value, 8)
  if (value instanceof Literal) return value.text
  if (Array.isArray(value)) return `[${value.map(toJson).join(',')}]`
  if (typeof value === 'object' && value !== null) {
    const fields = Object.entries(value).filter(([, field]) => field !== undefined)
    return `{${fields.map(([key, field]) => `${JSON.stringify(key)}:${toJson(field)}`).join(',')}}`
  }
  return JSON.stringify(value ?? null)
}
