import { createReadStream, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { reasonOf } from '@custody/chains/reason'
import { OfacXml, type SanctionsList } from './ofac-xml.ts'

const ADDRESS = /^[A-Za-z0-9:]{14,128}$/
const ASSET = /^[A-Z0-9]{2,12}$/
const DATE = /^\d{4}-\d{2}-\d{2}$/
/**
 * Maximum share of addresses that a new list may lack; a list that lost more was probably
 * truncated.
 */
const SHRINK_MAX = 0.2

/**
 * Validates a list of sanctioned addresses.
 * @throws Error with a sentence if the list is not valid
 */
export function checkList(value: unknown): SanctionsList {
  const { source, published, addresses } = (value ?? {}) as Partial<SanctionsList>
  if (typeof source !== 'string' || source === '') throw new Error('the list has no source')
  if (
    typeof published !== 'string' ||
    !DATE.test(published) ||
    Number.isNaN(Date.parse(published))
  ) {
    throw new Error('the list has no date of publication (YYYY-MM-DD)')
  }
  if (!Array.isArray(addresses) || addresses.length === 0)
    throw new Error('the list contains no addresses')
  const seen = new Set<string>()
  for (const each of addresses as unknown[]) {
    const { asset, address } = (each ?? {}) as { asset?: unknown; address?: unknown }
    if (
      typeof asset !== 'string' ||
      !ASSET.test(asset) ||
      typeof address !== 'string' ||
      !ADDRESS.test(address)
    ) {
      throw new Error(`${JSON.stringify(each).slice(0, 100)} is not an address with its asset`)
    }
    if (seen.has(`${asset} ${address}`)) throw new Error(`${address} is listed twice for ${asset}`)
    seen.add(`${asset} ${address}`)
  }
  return { source, published, addresses: addresses as SanctionsList['addresses'] }
}

export function readList(file: string): SanctionsList {
  try {
    return checkList(JSON.parse(readFileSync(file, 'utf8')))
  } catch (error) {
    throw new Error(`${file}: ${reasonOf(error)}`, { cause: error })
  }
}

function unique(
  matches: { asset: string; address: string }[],
): { asset: string; address: string }[] {
  return [...new Map(matches.map((each) => [`${each.asset} ${each.address}`, each])).values()].sort(
    (a, b) => (a.asset === b.asset ? (a.address < b.address ? -1 : 1) : a.asset < b.asset ? -1 : 1),
  )
}

/**
 * Parses a list with one address per line, as `ASSET address` or, if one asset is given for all, as
 * `address`. Lines that begin with # are comments.
 */
function fromLines(text: string, o: ReadOptions): SanctionsList {
  const matches = text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const words = line.split(/\s+/)
      if (words.length === 2) return { asset: words[0] as string, address: words[1] as string }
      if (words.length === 1 && o.asset !== null)
        return { asset: o.asset, address: words[0] as string }
      throw new Error(
        `"${line.slice(0, 100)}" is not "ASSET address"${o.asset === null ? '; if a file contains one asset only, name the asset with --asset' : ''}`,
      )
    })
  if (o.published === null)
    throw new Error('--published: is required (YYYY-MM-DD), because the list contains no date')
  return {
    source: 'OFAC Specially Designated Nationals list, text file',
    published: o.published,
    addresses: unique(matches),
  }
}

interface ReadOptions {
  asset: string | null
  published: string | null
}

/**
 * Reads a file in any of the known formats, as a stream, because OFAC's own file has more than 100
 * MB.
 * @throws Error with a sentence if the list is not valid or not complete
 */
export async function readAnyList(file: string, o: ReadOptions): Promise<SanctionsList> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let text = ''
  let xml: OfacXml | null = null
  const take = (part: string): void => {
    if (xml) {
      xml.write(part)
      return
    }
    text += part
    if (!text.trimStart().startsWith('<')) return
    xml = new OfacXml()
    xml.write(text.trimStart())
    text = ''
  }
  const decode = (bytes?: Buffer): string => {
    try {
      return decoder.decode(bytes, { stream: bytes !== undefined })
    } catch {
      throw new Error('the file is not encoded in UTF-8')
    }
  }
  for await (const part of createReadStream(file)) take(decode(part as Buffer))
  take(decode())
  const parsed = xml as OfacXml | null
  if (parsed) {
    const list = parsed.end()
    return checkList({ ...list, addresses: unique(list.addresses) })
  }
  return checkList(text.trimStart().startsWith('{') ? JSON.parse(text) : fromLines(text, o))
}

/**
 * Replaces a list file atomically.
 * @param force whether to accept an older or much shorter list
 * @throws Error if the new list is older or much shorter and `force` is false
 */
export function replaceList(
  file: string,
  current: SanctionsList | null,
  next: SanctionsList,
  force: boolean,
): { added: number; removed: number } {
  const before = new Set(current?.addresses.map(({ address }) => address))
  const after = new Set(next.addresses.map(({ address }) => address))
  const removed = [...before].filter((address) => !after.has(address)).length
  if (!force && current && next.published < current.published) {
    throw new Error(
      `the list of ${next.published} is older than the one in use (${current.published}); use --force to install it anyway`,
    )
  }
  if (!force && removed > before.size * SHRINK_MAX) {
    throw new Error(
      `${removed} of ${before.size} addresses would be removed; check that the file is complete, or use --force to install it anyway`,
    )
  }
  const temporary = `${file}.new`
  writeFileSync(temporary, `${JSON.stringify(next, null, 1)}\n`, { mode: 0o600, flush: true })
  renameSync(temporary, file)
  return { added: [...after].filter((address) => !before.has(address)).length, removed }
}
