import { formatAmount } from '../amount.ts'

/** Satoshi that appear in JSON as a number with exactly 8 decimals, as Core writes them. */
class Btc {
  readonly value: bigint

  constructor(value: bigint) {
    this.value = value
  }
}

/** A number already written out. */
export class Literal {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

export function btc(value: bigint): Btc {
  return new Btc(value)
}

/** JSON.stringify, but amounts keep every digit: a float would lose them. */
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
