// The registry with which the policy language is tested, compared with the one of real networks.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { policyRegistry } from '../packages/chains/src/index.ts'
import { mainnet } from '../packages/chains/testing/support.ts'
import { lint, readDocument } from '../packages/policy/src/index.ts'
import { ASSETS } from '../packages/policy/testing/registry.ts'

test('the registry with which the policy language is tested describes assets as the real one', () => {
  const real = policyRegistry(mainnet)
  for (const [name, asset] of ASSETS) assert.deepEqual(real.asset(name), asset, name)
})

test('the worked policies have no finding with the registry of real networks', () => {
  const folder = new URL('../packages/policy/examples/', import.meta.url)
  const registry = policyRegistry(mainnet)
  const names = readdirSync(folder)
  assert.equal(names.length, 5)
  for (const name of names) {
    const document = readDocument(readFileSync(new URL(name, folder), 'utf8'))
    assert.deepEqual(lint(document, { registry, enrolled: [], panelOrigins: [] }), [], name)
  }
})
