import { readFileSync, renameSync, writeFileSync } from 'node:fs'

/** Addresses that OFAC's SDN list names. `published` is the list's own date (YYYY-MM-DD). */
export interface SanctionsList { source: string; published: string; addresses: { asset: string; address: string }[] }

const ADDRESS = /^[A-Za-z0-9:]{14,128}$/
const ASSET = /^[A-Z0-9]{2,12}$/
const DATE = /^\d{4}-\d{2}-\d{2}$/
/** A list that lost more than this share of its addresses was probably cut off. */
const SHRINK_MAX = 0.2

/** @throws Error with a sentence where the list is not sound */
export function checkList(value: unknown): SanctionsList {
  const { source, published, addresses } = (value ?? {}) as Partial<SanctionsList>
  if (typeof source !== 'string' || source === '') throw new Error('the list names no source')
  if (typeof published !== 'string' || !DATE.test(published) || Number.isNaN(Date.parse(published))) throw new Error('the list has no date of publication (YYYY-MM-DD)')
  if (!Array.isArray(addresses) || addresses.length === 0) throw new Error('the list has no addresses')
  const seen = new Set<string>()
  for (const each of addresses as unknown[]) {
    const { asset, address } = (each ?? {}) as { asset?: unknown; address?: unknown }
    if (typeof asset !== 'string' || !ASSET.test(asset) || typeof address !== 'string' || !ADDRESS.test(address)) throw new Error(`${JSON.stringify(each).slice(0, 100)} is not an address with its asset`)
    if (seen.has(`${asset} ${address}`)) throw new Error(`${address} is listed twice for ${asset}`)
    seen.add(`${asset} ${address}`)
  }
  return { source, published, addresses: addresses as SanctionsList['addresses'] }
}

export function readList(file: string): SanctionsList {
  try {
    return checkList(JSON.parse(readFileSync(file, 'utf8')))
  } catch (error) {
    throw new Error(`${file}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
}

const LABEL = 'Digital Currency Address - '

function unique(found: { asset: string; address: string }[]): { asset: string; address: string }[] {
  return [...new Map(found.map((each) => [`${each.asset} ${each.address}`, each])).values()].sort((a, b) => (a.asset === b.asset ? (a.address < b.address ? -1 : 1) : a.asset < b.asset ? -1 : 1))
}

/** OFAC's own XML: sdn_advanced.xml (feature types by number) and sdn.xml (identities by name). */
function fromXml(text: string): SanctionsList {
  const found: { asset: string; address: string }[] = []
  const types = new Map([...text.matchAll(/<FeatureType\b[^>]*\bID="(\d+)"[^>]*>\s*Digital Currency Address - ([A-Z0-9]+)\s*<\/FeatureType>/g)].map((match) => [match[1] as string, match[2] as string]))
  for (const feature of text.matchAll(/<Feature\b[^>]*\bFeatureTypeID="(\d+)"[^>]*>([\s\S]*?)<\/Feature>/g)) {
    const asset = types.get(feature[1] as string)
    if (asset === undefined) continue
    for (const detail of (feature[2] as string).matchAll(/<VersionDetail\b[^>]*>\s*([^<\s]+)\s*<\/VersionDetail>/g)) found.push({ asset, address: detail[1] as string })
  }
  for (const id of text.matchAll(/<idType>\s*Digital Currency Address - ([A-Z0-9]+)\s*<\/idType>\s*<idNumber>\s*([^<\s]+)\s*<\/idNumber>/g)) found.push({ asset: id[1] as string, address: id[2] as string })
  const advanced = /<DateOfIssue\b[^>]*>\s*<Year>(\d{4})<\/Year>\s*<Month>(\d{1,2})<\/Month>\s*<Day>(\d{1,2})<\/Day>/.exec(text)
  const plain = /<Publish_Date>\s*(\d{1,2})\/(\d{1,2})\/(\d{4})\s*<\/Publish_Date>/.exec(text)
  const two = (number: string) => number.padStart(2, '0')
  const published = advanced ? `${advanced[1]}-${two(advanced[2] as string)}-${two(advanced[3] as string)}` : plain ? `${plain[3]}-${two(plain[1] as string)}-${two(plain[2] as string)}` : ''
  return { source: 'OFAC Specially Designated Nationals list', published, addresses: unique(found) }
}

/** One address a line, as `ASSET address` or, with an asset for all, as `address`. Lines that begin with # are comments. */
function fromLines(text: string, o: { asset: string | null; published: string | null }): SanctionsList {
  const found = text.split(/\r?\n/).map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('#')).map((line) => {
    const words = line.split(/\s+/)
    if (words.length === 2) return { asset: words[0] as string, address: words[1] as string }
    if (words.length === 1 && o.asset !== null) return { asset: o.asset, address: words[0] as string }
    throw new Error(`"${line.slice(0, 100)}" is not "ASSET address"${o.asset === null ? '; where a file holds one asset, name it by --asset' : ''}`)
  })
  if (o.published === null) throw new Error('--published: a list without a date needs one (YYYY-MM-DD)')
  return { source: 'OFAC Specially Designated Nationals list, as lines', published: o.published, addresses: unique(found) }
}

/** Reads a list in any of the known forms. @throws Error with a sentence */
export function parseList(text: string, o: { asset: string | null; published: string | null }): SanctionsList {
  const start = text.trimStart()
  if (start.startsWith('{')) return checkList(JSON.parse(text))
  if (!start.startsWith('<')) return checkList(fromLines(text, o))
  if (!text.includes(LABEL)) throw new Error('the XML names no digital currency addresses: take OFAC’s sdn_advanced.xml or sdn.xml')
  return checkList(fromXml(text))
}

/** Replaces a list file in one step. @throws Error where the new list is older, or much shorter and not forced */
export function replaceList(file: string, current: SanctionsList | null, next: SanctionsList, force: boolean): { added: number; removed: number } {
  const before = new Set(current?.addresses.map(({ address }) => address))
  const after = new Set(next.addresses.map(({ address }) => address))
  const removed = [...before].filter((address) => !after.has(address)).length
  if (!force && current && next.published < current.published) throw new Error(`the list of ${next.published} is older than the one in use (${current.published}); --force takes it all the same`)
  if (!force && removed > before.size * SHRINK_MAX) throw new Error(`${removed} of ${before.size} addresses would be dropped; was the file cut off? --force takes it all the same`)
  const temporary = `${file}.new`
  writeFileSync(temporary, `${JSON.stringify(next, null, 1)}\n`, { mode: 0o600, flush: true })
  renameSync(temporary, file)
  return { added: [...after].filter((address) => !before.has(address)).length, removed }
}
