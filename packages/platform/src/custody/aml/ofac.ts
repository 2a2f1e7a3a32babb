import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadRegistry, type Network } from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import type { Logger } from 'pino'
import { formatKey, formatKeysOf } from './address-key.ts'
import { readList } from './ofac-file.ts'
import type { SanctionsList } from './ofac-xml.ts'

const DAY_MS = 86_400_000
/** Age in days from which a list counts as outdated. */
export const LIST_DAYS_MAX = 30

const SHIPPED = fileURLToPath(new URL('../../../data/ofac-addresses.json', import.meta.url))

/** Returns the path to which `custody aml refresh-ofac` writes. */
export const refreshedFile = (home: string) => join(home, 'ofac-addresses.json')

/** Returns the file in use: the configured one, the refreshed one, or the one that is shipped. */
export function sanctionsFile(home: string, setting: string | null): string {
  return setting ?? (existsSync(refreshedFile(home)) ? refreshedFile(home) : SHIPPED)
}

/**
 * OFAC's addresses, matched on every network with the same address format. A refreshed file takes
 * effect without a restart.
 */
export class Sanctions {
  readonly #file: () => string
  readonly #log: Logger
  /**
   * Created when an address is first checked: starting needs the list, but not the libraries that
   * compare addresses.
   */
  #keys: Set<string> | null = null
  #state = ''
  #writtenMs = 0
  #list: SanctionsList

  /**
   * Reads the list, and fails if that is not possible.
   * @throws Error if the file is not valid, because screening must not use an incomplete list
   */
  constructor(file: () => string, log: Logger) {
    this.#file = file
    this.#log = log
    this.#list = this.#load()
  }

  /** The list in use; a replaced file is read first. */
  get list(): SanctionsList {
    this.#refresh()
    return this.#list
  }

  /**
   * Age in days that the list in use had when its file was written; a list that is shipped with the
   * release, or restored, is old when it is written.
   */
  get ageWhenLoadedDays(): number {
    const { published } = this.list
    const written = statSync(this.#file(), { throwIfNoEntry: false })?.mtimeMs ?? this.#writtenMs
    this.#writtenMs = written
    return Math.floor((written - Date.parse(published)) / DAY_MS)
  }

  has(network: Network, address: string): boolean {
    this.#refresh()
    this.#keys ??= keysOf(this.#list)
    return this.#keys.has(formatKey(network, address))
  }

  #load(): SanctionsList {
    const file = this.#file()
    const state = stateOf(file)
    const list = readList(file)
    this.#keys = null
    this.#state = state
    return list
  }

  #refresh(): void {
    let state = 'gone'
    try {
      state = stateOf(this.#file())
      if (state === this.#state) return
      this.#list = this.#load()
      this.#log.info(
        { published: this.#list.published, addresses: this.#list.addresses.length },
        'the list of sanctioned addresses was refreshed',
      )
    } catch (error) {
      // The last valid list stays in effect. The error is logged once for each state of the file.
      if (state !== this.#state) {
        this.#log.error(
          { err: reasonOf(error) },
          'the list of sanctioned addresses cannot be read; the previous list stays in force',
        )
      }
      this.#state = state
    }
  }
}

/**
 * Returns the format keys of a list. Published addresses belong to the real networks, so the
 * mainnet registry is used even if this installation runs on local chains.
 */
function keysOf(list: SanctionsList): Set<string> {
  const registry = loadRegistry('mainnet')
  return new Set(list.addresses.flatMap(({ address }) => [...formatKeysOf(registry, address)]))
}

function stateOf(file: string): string {
  const { mtimeMs, size, ino } = statSync(file)
  return `${file} ${mtimeMs} ${size} ${ino}`
}
