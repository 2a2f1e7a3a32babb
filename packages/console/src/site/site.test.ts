// Responses of the platform for the panel, without a browser: headers, encodings and sizes.
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { loadSite } from './site.ts'

/**
 * Maximum compressed size in bytes of the files that a browser loads before the first page of any
 * user.
 */
const INITIAL_BYTES_MAX = 60_000
/** Maximum size of all pages together. */
const WHOLE_BYTES_MAX = 200_000

const site = loadSite()
const html = String(site.page(undefined).body)
const assets = readdirSync(fileURLToPath(new URL('../../dist/assets', import.meta.url))).filter(
  (name) => !/\.(?:br|gz)$/.test(name),
)
const bytes = (names: readonly string[], encoding: string) =>
  names.reduce((sum, name) => sum + (site.asset(name, encoding)?.body.length ?? 0), 0)

/** Returns everything that a script imports statically, directly or through other scripts. */
function loadedWith(name: string, seen = new Set<string>()): Set<string> {
  seen.add(name)
  const text = String(site.asset(name, undefined)?.body ?? '')
  for (const [, other] of text.matchAll(/(?:from|import)\s*["']\.\/([\w.-]+)["']/g))
    if (!seen.has(other as string)) loadedWith(other as string, seen)
  return seen
}

test('the files loaded before the first page, and all files together, are within size limits', (t) => {
  const first = [...html.matchAll(/(?:src|href)="\/console\/assets\/([\w.-]+)"/g)].map(
    ([, name]) => name as string,
  )
  const scripts = new Set(
    first.filter((name) => name.endsWith('.js')).flatMap((name) => [...loadedWith(name)]),
  )
  const initial = bytes([...scripts], 'br')
  assert.ok(scripts.size > 0 && initial > 10_000, 'the scripts were not found')
  assert.ok(initial < INITIAL_BYTES_MAX, `${initial} bytes of script`)
  // Address derivation is loaded only to verify an address.
  const isOfVerifying = (name: string) => /^(?:verify-address|address|registry)/.test(name)
  const whole = bytes(
    assets.filter((name) => name.endsWith('.js') && !isOfVerifying(name)),
    'br',
  )
  assert.ok(whole < WHOLE_BYTES_MAX, `${whole} bytes`)
  t.diagnostic(`brotli: ${initial} bytes of script before the first page, ${whole} in all pages`)
})

test('the panel loads only its own files, and can be neither framed nor cached', () => {
  const { status, headers } = site.page('br')
  assert.deepEqual(
    [status, headers['content-type'], headers['cache-control'], headers['content-encoding']],
    [200, 'text/html; charset=utf-8', 'no-store', 'br'],
  )
  assert.equal(
    headers['content-security-policy'],
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
      "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  )
  assert.deepEqual(
    [headers['x-frame-options'], headers['cross-origin-opener-policy'], headers['referrer-policy']],
    ['DENY', 'same-origin', 'no-referrer'],
  )
  assert.doesNotMatch(html, /<script(?![^>]* src=)|<style|\sstyle=|\son\w+=|https?:\/\//)
  for (const [, path] of html.matchAll(/(?:src|href)="([^"]+)"/g)) {
    const name = /^\/console\/assets\/([\w.-]+)$/.exec(path as string)?.[1] ?? assert.fail(path)
    assert.equal(
      site.asset(name, undefined)?.headers['cache-control'],
      'public, max-age=31536000, immutable',
      name,
    )
  }
})

test('serves no other paths, and a panel that is not built states which command to run', () => {
  for (const name of ['../../index.html', '..', '', '__proto__', `${assets[0]}.br`])
    assert.equal(site.asset(name, 'br'), null, name)
  const empty = mkdtempSync(join(tmpdir(), 'custody-console-'))
  assert.throws(() => loadSite(empty), /npm run compile/)
  rmSync(empty, { recursive: true })
})
