// Persons of enrolments, as operators enter them and as the nodes state them.
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { differences } from '../nodes.ts'
import { enrolmentLine, readEnrolment } from '../enrol.ts'
import { personsOf, type PolicyView } from './nodes.ts'

const view = (api_keys: string[] | undefined, persons?: PolicyView['persons']) =>
  ({ api_keys, persons }) as PolicyView
const of = (api_key: string, person: string) => ({ api_key, person })

test('a person counts if all nodes that have the key state the same one', () => {
  const same = [view(['a', 'b'], [of('a', 'dan')]), view(['a'], [of('a', 'dan')]), view([])]
  assert.deepEqual([...personsOf(same)], [['a', 'dan']])
  assert.deepEqual([...personsOf([view(['a'], [of('a', 'dan')]), view(['a'], [])])], [])
  assert.deepEqual([...personsOf([view(['a'], [of('a', 'dan')]), view(['a'])])], [])
  const others = [view(['a'], [of('a', 'dan')]), view(['a'], [of('a', 'erin')])]
  assert.deepEqual([...personsOf(others)], [])
  assert.deepEqual([...personsOf([view(undefined)])], [])
})

test('--person must be the ID of a person, and the line of a node contains it', () => {
  const publicKeyPem = generateKeyPairSync('rsa', { modulusLength: 4096 })
    .publicKey.export({ type: 'spki', format: 'pem' })
    .toString()
  const params = { workspace: 'acme', subAccount: 'main', role: 'full', publicKeyPem }
  assert.equal(readEnrolment({ ...params, person: 'dan' }).person, 'dan')
  assert.equal(Object.hasOwn(readEnrolment(params), 'person'), false)
  for (const person of ['', 'Dan', 'dan@example.com', 'a'.repeat(65)])
    assert.throws(() => readEnrolment({ ...params, person }), /^OperatorError: --person: /)
  const answer = { node: 1, role: 'full', person: 'dan' }
  assert.match(enrolmentLine(answer), /, key of dan$/)
  assert.doesNotMatch(enrolmentLine({ node: 1, role: 'full' }), /key of/)
})

test('a node that stored a person which the operator did not enter differs', () => {
  const stored = { node: 1, person: 'dan' }
  assert.deepEqual(differences([stored], { expect: { person: undefined } }), [
    'signer 1 has person dan, but you entered nothing',
  ])
  assert.deepEqual(differences([{ node: 1 }], { expect: { person: undefined } }), [])
  assert.equal(differences([{ node: 1 }], { expect: { person: 'dan' } }).length, 1)
})
