// Responses of the platform for the page, without a browser: headers, encodings and sizes; and the
// page's texts.
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { ar } from '../page/catalogue/ar.ts'
import { de } from '../page/catalogue/de.ts'
import { en } from '../page/catalogue/en.ts'
import { es } from '../page/catalogue/es.ts'
import { ru } from '../page/catalogue/ru.ts'
import { zh } from '../page/catalogue/zh.ts'
import { subtract } from '../page/decimal.ts'
import { walletLink, webLink } from '../page/links.ts'
import { loadSite } from './index.ts'

const BYTES_MAX = 60_000
const WIDGET_BYTES_MAX = 5000

const site = loadSite()
const assets = readdirSync(fileURLToPath(new URL('../../dist/assets', import.meta.url))).filter(
  (name) => !/\.(?:br|gz)$/.test(name),
)

test('the payment page is under 60 kB compressed, and the widget under 5 kB', () => {
  for (const encoding of ['br', 'gzip']) {
    const bytes = (names: string[]) =>
      names.reduce((sum, name) => sum + (site.asset(name, encoding)?.body.length ?? 0), 0)
    const languages = assets.filter((name) => /^(?:de|en|es|ru|zh|ar)-/.test(name))
    assert.equal(languages.length, 6)
    const dearest = Math.max(...languages.map((name) => bytes([name])))
    const whole =
      site.page([], encoding).body.length +
      bytes(assets.filter((name) => !languages.includes(name))) +
      dearest
    assert.ok(whole > 10_000 && whole < BYTES_MAX, `${encoding}: ${whole} bytes`)
    assert.ok(site.widget(encoding, undefined).body.length < WIDGET_BYTES_MAX)
  }
})

test('the page loads only its own files, is not cached, and only configured origins frame it', () => {
  const { status, headers, body } = site.page(
    ['https://shop.example', 'http://localhost:3000'],
    undefined,
  )
  assert.deepEqual(
    [status, headers['content-type'], headers['cache-control'], headers['referrer-policy']],
    [200, 'text/html; charset=utf-8', 'no-store', 'no-referrer'],
  )
  assert.equal(
    headers['content-security-policy'],
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
      "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors https://shop.example http://localhost:3000",
  )
  assert.ok(headers['permissions-policy']?.includes('camera=()'))
  const html = String(body)
  assert.doesNotMatch(html, /<script(?![^>]* src=)|<style|\sstyle=|\son\w+=|https?:\/\//)
  for (const [, path] of html.matchAll(/(?:src|href)="([^"]+)"/g)) {
    const name = /^\/checkout\/assets\/([\w.-]+)$/.exec(path as string)?.[1] ?? assert.fail(path)
    assert.equal(site.asset(name, undefined)?.status, 200, name)
  }
})

test('the content security policy ignores invalid origins; unknown invoices cannot be framed', () => {
  const policy = (origins: string[] | null) =>
    site.page(origins, undefined).headers['content-security-policy'] ?? ''
  for (const origin of [
    "https://a.example; script-src 'unsafe-inline'",
    '*',
    'https://*',
    'https:',
    'data:',
    "'self'",
    'https://a.example/path',
    '',
  ])
    assert.match(policy([origin]), /frame-ancestors 'none'$/, origin)
  assert.match(policy(['https://a.example', '*']), /frame-ancestors https:\/\/a\.example$/)
  assert.match(policy([]), /frame-ancestors 'none'$/)
  const missing = site.page(null, undefined)
  assert.equal(missing.status, 404)
  assert.match(policy(null), /frame-ancestors 'none'$/)
  assert.match(String(missing.body), /<body data-missing>/)
})

test('serves only known files with a hash in the name, in an encoding that the client accepts', () => {
  const script = assets.find((name) => /^index-.*\.js$/.test(name)) as string
  const plain = site.asset(script, undefined) ?? assert.fail()
  assert.equal(plain.headers['cache-control'], 'public, max-age=31536000, immutable')
  const br = site.asset(script, 'gzip, deflate, br, zstd') ?? assert.fail()
  assert.deepEqual([br.headers['content-encoding'], br.headers['vary']], ['br', 'accept-encoding'])
  assert.deepEqual(brotliDecompressSync(br.body), plain.body)
  const gzip = site.asset(script, 'br;q=0, gzip;q=0.5') ?? assert.fail()
  assert.equal(gzip.headers['content-encoding'], 'gzip')
  assert.deepEqual(gunzipSync(gzip.body), plain.body)
  assert.equal(site.asset(script, 'identity')?.headers['content-encoding'], undefined)
  for (const name of [
    '../../index.html',
    '..',
    '',
    '.',
    `${script}.br`,
    '__proto__',
    'constructor',
    '../../package.json',
    `./${script}`,
  ])
    assert.equal(site.asset(name, 'br'), null, name)
})

test('the widget is revalidated within minutes, and sent only if it has changed', () => {
  const first = site.widget('br', undefined)
  assert.deepEqual(
    [first.status, first.headers['cache-control'], first.headers['content-type']],
    [200, 'public, max-age=300', 'text/javascript; charset=utf-8'],
  )
  const etag = first.headers['etag'] as string
  for (const expectedKeys of [etag, `W/${etag}`, `"other", ${etag}`])
    assert.deepEqual(
      [site.widget('br', expectedKeys).status, site.widget('br', expectedKeys).body],
      [304, ''],
    )
  assert.equal(site.widget('br', '"other"').status, 200)
})

test('a page that was not built states which command to run', () => {
  const empty = mkdtempSync(join(tmpdir(), 'custody-test-'))
  assert.throws(() => loadSite(empty), /npm run compile/)
  rmSync(empty, { recursive: true })
})

test('every language has all texts with the same placeholders, and its own plural forms', () => {
  const values = (text: string) => [...text.matchAll(/\{\w+\}/g)].map(([place]) => place).toSorted()
  for (const [language, words] of Object.entries({ en, de, es, ru, zh, ar })) {
    assert.deepEqual(Object.keys(words), Object.keys(en), language)
    const forms = new Intl.PluralRules(language).resolvedOptions().pluralCategories.toSorted()
    for (const [key, said] of Object.entries(words)) {
      const model = en[key as keyof typeof en]
      if (typeof said === 'string') {
        assert.deepEqual(values(said), values(model as string), `${language} ${key}`)
        assert.notEqual(said.trim(), '')
      } else {
        assert.deepEqual(Object.keys(said).toSorted(), forms, `${language} ${key}`)
        // A form for exactly one number may contain words in place of the number.
        const expectedKeys = new Set(values((model as { other: string }).other))
        assert.deepEqual(values(said.other), [...expectedKeys], `${language} ${key}`)
        for (const each of Object.values(said as Record<string, string>))
          assert.ok(
            values(each).every((place) => expectedKeys.has(place)),
            each,
          )
      }
    }
  }
})

test('subtracts decimals exactly', () => {
  for (const [minuend, subtrahend, difference] of [
    ['0.02', '0.01663334', '0.00336666'],
    ['41', '40', '1'],
    ['100', '0', '100'],
    ['1', '1', '0'],
    ['1.50', '0.5', '1'],
    ['0.1', '0.3', '-0.2'],
    ['123456789012345678.000000000000000001', '123456789012345677', '1.000000000000000001'],
  ] as const)
    assert.equal(subtract(minuend, subtrahend), difference)
})

test('links only open web pages and wallets, and run no code', () => {
  assert.equal(
    webLink('https://shop.example/thanks?order=1'),
    'https://shop.example/thanks?order=1',
  )
  for (const url of ['javascript:alert(1)', 'data:text/html,x', 'ftp://a', 'nothing', '', null])
    assert.equal(webLink(url), null)
  for (const uri of [
    'bitcoin:bc1q?amount=1',
    'web+stellar:pay?destination=G',
    'ethereum:0x@1?value=1',
  ])
    assert.equal(walletLink(uri), uri)
  for (const uri of [
    'javascript:alert(1)',
    'JavaScript:alert(1)',
    'data:text/html,x',
    'file:///etc',
    '//a',
    '',
    null,
  ])
    assert.equal(walletLink(uri), null)
})
