import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { RequestError } from '../errors.ts'
import { Journal } from '../journal.ts'

const RISK_LEVELS = ['SEVERE', 'HIGH', 'MEDIUM', 'LOW'] as const
export type RiskLevel = (typeof RISK_LEVELS)[number]

interface Entry {
  address: string
  level: RiskLevel | null
}

const ADDRESS_LENGTH_MAX = 200

/** Returns the key by which addresses are compared: hex and bech32 ignore case, base58 does not. */
function sameAddressKey(address: string): string {
  if (/^0x[0-9a-f]{40}$/i.test(address)) return address.toLowerCase()
  const text = address.replace(/^(bitcoincash|bchreg|bchtest):/i, '')
  const hasOneCase = text === text.toLowerCase() || text === text.toUpperCase()
  return hasOneCase && /^([a-z_]{1,12}1|[qp])[02-9ac-hj-np-z]{20,}$/i.test(text)
    ? text.toLowerCase()
    : text
}

/** Risk results of the local providers for each address. They are stored and survive restarts. */
export class Risks {
  readonly #levels = new Map<string, RiskLevel>()
  readonly #journal: Journal<Entry>

  private constructor(journal: Journal<Entry>, records: Entry[]) {
    this.#journal = journal
    for (const record of records) this.#apply(record)
  }

  static open(home: string): Risks {
    mkdirSync(home, { recursive: true, mode: 0o700 })
    const { journal, records } = Journal.open<Entry>(join(home, 'risks.journal'))
    return new Risks(journal, records)
  }

  set(address: unknown, level: unknown): { address: string; level: string } {
    if (
      typeof address !== 'string' ||
      address === '' ||
      address.length > ADDRESS_LENGTH_MAX ||
      /\s/.test(address)
    ) {
      throw new RequestError(`address ${JSON.stringify(address)} is not an address`)
    }
    const wanted = String(level).toUpperCase()
    const riskLevel = RISK_LEVELS.find((each) => each === wanted)
    if (!riskLevel && wanted !== 'NONE') {
      throw new RequestError(
        `level ${JSON.stringify(level)} is unknown; must be one of ${RISK_LEVELS.join(', ')}, none`,
      )
    }
    const entry = { address: sameAddressKey(address), level: riskLevel ?? null }
    this.#journal.append([entry])
    this.#apply(entry)
    return { address, level: riskLevel ?? 'none' }
  }

  get(address: string): RiskLevel | null {
    return this.#levels.get(sameAddressKey(address)) ?? null
  }

  close(): void {
    this.#journal.close()
  }

  #apply({ address, level }: Entry): void {
    if (level === null) this.#levels.delete(address)
    else this.#levels.set(address, level)
  }
}
