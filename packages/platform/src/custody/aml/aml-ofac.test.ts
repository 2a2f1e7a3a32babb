import assert from 'node:assert/strict'
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { loadRegistry, utxo, type Network } from '@custody/chains'
import type { Logger } from 'pino'
import { checkList, readAnyList, readList, replaceList } from './ofac-file.ts'
import type { SanctionsList } from './ofac-xml.ts'
import { Sanctions } from './ofac.ts'
import { collectScreening } from '../../server/app/health/collectors/screening.ts'
import { createMetrics } from '../../core/metrics.ts'
import { refreshOfac } from '../../server/operator/ofac.ts'
import { systemEnvironment } from '../../core/environment.ts'
import { Secrets } from '../../core/secrets.ts'

const folder = mkdtempSync(join(tmpdir(), 'custody-ofac-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const SHIPPED = fileURLToPath(new URL('../../../data/ofac-addresses.json', import.meta.url))
const LAZARUS = '0x098B716B8Aaf21512996dC57EB0615e2383E2f96'
const BITCOIN = '12QtD5BFwRsdNsAZY76UVE1xyCGNTojH9h'
const lines: string[] = []
const log = {
  info: () => undefined,
  error: (_: unknown, text: string) => lines.push(text),
} as unknown as Logger
const at = (mode: 'local' | 'mainnet', code: string) => loadRegistry(mode).network(code) as Network
const NO_OPTIONS = { asset: null, published: null }

test('the bundled list is valid, and an address matches on every network with its format', () => {
  const sanctions = new Sanctions(() => SHIPPED, log)
  assert.ok(sanctions.list.addresses.length >= 30)
  for (const code of ['ETH', 'BSC', 'POL', 'BASE', 'ARB', 'KLAY']) {
    assert.ok(sanctions.has(at('mainnet', code), LAZARUS.toLowerCase()), code)
    assert.ok(!sanctions.has(at('mainnet', code), `0x${'1'.repeat(40)}`))
  }
  const script = utxo.scriptOf(at('mainnet', 'BTC'), BITCOIN)
  for (const [mode, code] of [
    ['mainnet', 'BTC'],
    ['mainnet', 'BCH'],
    ['mainnet', 'LTC'],
    ['mainnet', 'DOGE'],
    ['local', 'BTC'],
  ] as const) {
    assert.ok(
      sanctions.has(at(mode, code), utxo.addressOf(at(mode, code), script) as string),
      `${mode} ${code}`,
    )
  }
  assert.ok(!sanctions.has(at('mainnet', 'BTC'), '1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa'))
})

const ADVANCED = `<?xml version="1.0"?><Sanctions><DateOfIssue CalendarTypeID="1"><Year>2026</Year><Month>3</Month><Day>9</Day></DateOfIssue>
<FeatureTypeValues><FeatureType ID="344" FeatureTypeGroupID="1">Digital Currency Address - XBT</FeatureType><FeatureType ID="345" FeatureTypeGroupID="1">Digital Currency Address - ETH</FeatureType><FeatureType ID="8">Birthdate</FeatureType></FeatureTypeValues>
<Feature ID="1" FeatureTypeID="345"><FeatureVersion ID="9" ReliabilityID="1"><Comment/><VersionDetail DetailTypeID="1432">${LAZARUS}</VersionDetail></FeatureVersion></Feature>
<Feature ID="2" FeatureTypeID="8"><FeatureVersion><VersionDetail DetailTypeID="1">1970-01-01-not-an-address</VersionDetail></FeatureVersion></Feature>
<Feature ID="3" FeatureTypeID="344"><FeatureVersion><VersionDetail DetailTypeID="1432">${BITCOIN}</VersionDetail></FeatureVersion></Feature></Sanctions>`
const PLAIN = `<sdnList><publshInformation><Publish_Date>03/09/2026</Publish_Date></publshInformation><sdnEntry><idList><id><uid>1</uid><idType>Digital Currency Address - ETH</idType><idNumber>${LAZARUS}</idNumber></id>
<id><uid>2</uid><idType>Digital Currency Address - XBT</idType><idNumber>${BITCOIN}</idNumber></id><id><uid>3</uid><idType>Passport</idType><idNumber>X12345678901234</idNumber></id></idList></sdnEntry></sdnList>`

/** Parses a file that contains the given text. */
function parseList(
  text: string | Uint8Array,
  o: { asset: string | null; published: string | null },
): Promise<SanctionsList> {
  const file = join(folder, 'given')
  writeFileSync(file, text)
  return readAnyList(file, o)
}

test('reads a list from both kinds of OFAC XML, from plain lines, and from its own format', async () => {
  const expected = [
    { asset: 'ETH', address: LAZARUS },
    { asset: 'XBT', address: BITCOIN },
  ]
  for (const text of [ADVANCED, PLAIN]) {
    const list = await parseList(text, NO_OPTIONS)
    assert.deepEqual([list.published, list.addresses], ['2026-03-09', expected])
    assert.deepEqual(await parseList(JSON.stringify(list), NO_OPTIONS), list)
  }
  assert.deepEqual(
    (
      await parseList(`# two\nXBT ${BITCOIN}\nETH ${LAZARUS}\n`, {
        asset: null,
        published: '2026-03-09',
      })
    ).addresses,
    expected,
  )
  assert.deepEqual(
    (await parseList(`${BITCOIN}\n`, { asset: 'XBT', published: '2026-03-09' })).addresses,
    [expected[1]],
  )
})

test('refuses an invalid list', async () => {
  for (const [text, reason] of [
    ['{', /JSON/],
    ['{}', /source/],
    ['<xml></xml>', /digital currency/],
    [`${BITCOIN}\n`, /--asset/],
    [`XBT ${BITCOIN}`, /--published/],
    ['XBT <script>', /not an address/],
    [`XBT ${BITCOIN} x`, /is not/],
  ] as const) {
    await assert.rejects(
      parseList(text, {
        asset: null,
        published: reason.source === '--published' ? null : '2026-01-01',
      }),
      reason,
      text,
    )
  }
  assert.throws(
    () => checkList({ source: 'x', published: '2026-01-01', addresses: [] }),
    /no addresses/,
  )
  assert.throws(
    () =>
      checkList({
        source: 'x',
        published: '2026-13-01',
        addresses: [{ asset: 'ETH', address: LAZARUS }],
      }),
    /date/,
  )
})

test('a refreshed list applies without a restart; an older, smaller or broken list is refused', () => {
  const file = join(folder, 'ofac-addresses.json')
  const list = (published: string, count: number): SanctionsList => ({
    source: 'test',
    published,
    addresses: Array.from({ length: count }, (_, n) => ({
      asset: 'ETH',
      address: `0x${(n + 1).toString(16).padStart(40, '0')}`,
    })),
  })
  assert.deepEqual(replaceList(file, null, list('2026-01-01', 10), false), {
    added: 10,
    removed: 0,
  })
  assert.equal(statSync(file).mode & 0o777, 0o600)
  const sanctions = new Sanctions(() => file, log)
  const last = `0x${(11).toString(16).padStart(40, '0')}`
  assert.ok(!sanctions.has(at('local', 'ETH'), last))
  assert.throws(() => replaceList(file, readList(file), list('2025-12-31', 11), false), /older/)
  assert.throws(
    () => replaceList(file, readList(file), list('2026-01-02', 5), false),
    /would be removed/,
  )
  assert.equal(readList(file).addresses.length, 10)
  assert.deepEqual(replaceList(file, readList(file), list('2026-01-02', 11), false), {
    added: 1,
    removed: 0,
  })
  assert.ok(sanctions.has(at('local', 'ETH'), last))
  writeFileSync(file, '{"source":')
  assert.ok(sanctions.has(at('local', 'ETH'), last), 'the last sound list stays in force')
  assert.match(lines.at(-1) ?? '', /stays in force/)
  rmSync(file)
  assert.ok(sanctions.has(at('local', 'ETH'), last))
  assert.throws(() => new Sanctions(() => file, log))
})

test('a secret can be decrypted only with the same key and for the same record', async () => {
  const home = join(folder, 'home')
  const environment = systemEnvironment()
  const secrets = await Secrets.open(home, null, environment)
  assert.equal(statSync(join(home, 'secrets.key')).mode & 0o777, 0o600)
  const sealed = secrets.seal('aml 1', 'tökén')
  assert.ok(!sealed.includes('tökén'))
  assert.equal((await Secrets.open(home, null, environment)).open('aml 1', sealed), 'tökén')
  assert.notDeepEqual(secrets.seal('aml 1', 'tökén'), sealed)
  assert.throws(() => secrets.open('aml 2', sealed), /cannot be decrypted/)
  for (let at = 0; at < sealed.length; at++) {
    const changed = Buffer.from(sealed)
    changed[at] = (changed[at] as number) ^ 1
    assert.throws(() => secrets.open('aml 1', changed))
  }
  const other = await Secrets.open(home, Buffer.alloc(32, 7).toString('base64'), environment)
  assert.throws(() => other.open('aml 1', sealed), /another secrets key/)
  await assert.rejects(Secrets.open(home, 'c2hvcnQ=', environment), /CUSTODY_SECRETS_KEY/)
  assert.ok(readFileSync(join(home, 'secrets.key')).length === 32)
})

/**
 * The same list, written with every variation that XML allows, in case OFAC changes its formatting.
 */
const FREE = `\uFEFF<?xml version='1.0' encoding='utf-8'?>
<!DOCTYPE s:Sanctions>
<!-- <Feature ID="0" FeatureTypeID="345"><FeatureVersion><VersionDetail>0x0000000000000000000000000000000000000000</VersionDetail></FeatureVersion></Feature> -->
<s:Sanctions xmlns:s="https://example.org/advanced" s:Version='1'>
<s:DistinctParties><s:DistinctParty><s:DateOfIssue><s:Year>1999</s:Year><s:Month>1</s:Month><s:Day>1</s:Day></s:DateOfIssue>
<s:Feature FeatureTypeID = '345' note="a > b" ID='1'><s:FeatureVersion><s:VersionDetail DetailTypeID='1432'
 >0x098B716B<!-- in the midst -->8Aaf21512996<![CDATA[dC57EB0615e2]]>383E2f9&#54;</s:VersionDetail></s:FeatureVersion></s:Feature>
<s:Feature FeatureTypeID="8"><s:FeatureVersion><s:VersionDetail>Smith &amp; Sons &lt;not an address&gt;</s:VersionDetail></s:FeatureVersion></s:Feature>
<s:Feature FeatureTypeID="344"><s:FeatureVersion><s:VersionDetail DetailReferenceID="7"/><s:VersionDetail><![CDATA[
  ${BITCOIN}]]>
</s:VersionDetail></s:FeatureVersion></s:Feature></s:DistinctParty></s:DistinctParties>
<s:FeatureTypeValues><s:FeatureType ID='8'>Birthdate</s:FeatureType><s:FeatureType ID='344'>Digital&#x20;Currency Address - XBT</s:FeatureType>
<s:FeatureType FeatureTypeGroupID='1' ID='345'><![CDATA[Digital Currency Address - ETH]]></s:FeatureType></s:FeatureTypeValues>
<s:DateOfIssue CalendarTypeID='1'><s:Year> 2026 </s:Year><s:Month>3</s:Month><s:Day>9</s:Day></s:DateOfIssue>
</s:Sanctions>
<!-- the end -->`
const FREE_PLAIN = `<o:sdnList xmlns:o='urn:x'><o:publshInformation><o:Publish_Date><!-- US --> 3/9/2026 </o:Publish_Date></o:publshInformation><o:sdnEntry><o:idList>
<o:id><o:idNumber><![CDATA[${LAZARUS}]]></o:idNumber><o:idCountry>KP</o:idCountry><o:idType>Digital Currency Address &#45; ETH</o:idType></o:id>
<o:id><o:idType>Passport</o:idType><o:idNumber>&lt;1&gt;</o:idNumber></o:id><o:id><o:idType>Digital Currency Address - XBT</o:idType>
<!-- --><o:idNumber>${BITCOIN}</o:idNumber></o:id></o:idList></o:sdnEntry></o:sdnList>`

test('parses XML with prefixes, entities, CDATA, comments, either quotes and any attribute order', async () => {
  for (const text of [FREE, FREE_PLAIN]) {
    const { published, addresses } = await parseList(text, NO_OPTIONS)
    assert.deepEqual(
      [published, addresses],
      [
        '2026-03-09',
        [
          { asset: 'ETH', address: LAZARUS },
          { asset: 'XBT', address: BITCOIN },
        ],
      ],
    )
  }
  // The filler is longer than one read of the file, so chunks end at arbitrary positions.
  const filler = `<Profile Name='ä${'x'.repeat(60)}'>&amp;<![CDATA[ö]]></Profile>`.repeat(3000)
  const long = await parseList(
    ADVANCED.replace('<FeatureTypeValues>', `<All>${filler}</All><FeatureTypeValues>`),
    NO_OPTIONS,
  )
  assert.equal(long.addresses.length, 2)
})

test('refuses a truncated file or a file that is not OFAC’s XML, and keeps the current list', async () => {
  const home = join(folder, 'refreshed')
  mkdirSync(home)
  const file = join(folder, 'sdn.xml')
  const refresh = (text: string | Uint8Array) => {
    writeFileSync(file, text)
    return refreshOfac(home, file, { ...NO_OPTIONS, force: true })
  }
  await refresh(FREE)
  const inUse = readFileSync(join(home, 'ofac-addresses.json'), 'utf8')
  const bytes = Buffer.from(FREE)
  const end = FREE.lastIndexOf('</s:Sanctions>')
  for (let cut = 20; cut < end; cut += 97)
    await assert.rejects(
      refresh(bytes.subarray(0, cut)),
      /sdn\.xml: the (XML|file) is (?:not|incomplete) /,
      `cut at ${cut}`,
    )
  for (const [text, said] of [
    [`${PLAIN}<more/>`, /incomplete or not well-formed/],
    [PLAIN.replace('</idType>', '</idTyp>'), /not well-formed/],
    [PLAIN.replace('Passport', '&unknown;'), /not well-formed/],
    [PLAIN.replace(LAZARUS, `${LAZARUS} (old)`), /is not an address/],
    ['<html><body>Not found</body></html>', /contains no digital currency addresses/],
    [`<?xml version="1.0" encoding="utf-16"?>${PLAIN}`, /utf-16/],
    [
      Buffer.concat([
        Buffer.from(PLAIN.slice(0, 40)),
        Buffer.from([0xff, 0xfe]),
        Buffer.from(PLAIN.slice(40)),
      ]),
      /not encoded in UTF-8/,
    ],
  ] as const)
    await assert.rejects(refresh(text), said)
  assert.equal(readFileSync(join(home, 'ofac-addresses.json'), 'utf8'), inUse)
})

test('a metric reports the publication time of the list in use, also after a replacement', async () => {
  const file = join(folder, 'dated.json')
  const write = (published: string) =>
    writeFileSync(
      file,
      JSON.stringify({
        source: 'a test',
        published,
        addresses: [{ asset: 'ETH', address: LAZARUS }],
      }),
    )
  write('2030-01-31')
  const metrics = createMetrics()
  const services = {
    aml: { sanctions: new Sanctions(() => file, log) },
    metrics,
  }
  const reported = async () => {
    await collectScreening(services)
    return /^custody_sanctions_list_published_timestamp_seconds (\d+)$/m.exec(
      await metrics.text(),
    )?.[1]
  }
  assert.equal(await reported(), String(Date.UTC(2030, 0, 31) / 1000))
  write('2030-02-28')
  utimesSync(file, 1, 1)
  assert.equal(await reported(), String(Date.UTC(2030, 1, 28) / 1000))
})
