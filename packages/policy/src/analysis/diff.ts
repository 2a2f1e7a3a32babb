import { canonicalJson } from '@custody/request-auth/web'
import type { Approvals, Person } from '../document/people.ts'
import type { Rule } from '../document/rules.ts'
import type { PolicyDocument } from '../document/shape.ts'
import { approvalsText, ruleSentence } from '../sentences/rule-sentence.ts'
import { durationText, join, quote } from '../sentences/words.ts'
import { allowIncludes, quorumsInclude, restrictionIncludes } from './containment.ts'

/** What a change does to the acts and statements that pass. */
export type Tendency =
  /** More may pass, and nothing less. */
  | 'widens'
  /** Less may pass, and nothing more. */
  | 'narrows'
  /** The same passes. */
  | 'same'
  /** It cannot be told. */
  | 'unknown'

/** One difference between two documents. */
export interface Difference {
  /** Path that names the entry by its ID, for example `rules.small` or `groups.admins`. */
  readonly path: string
  readonly change: 'added' | 'removed' | 'changed'
  readonly tendency: Tendency
  /** A complete sentence, or two. */
  readonly sentence: string
}

const same = (a: unknown, b: unknown): boolean => canonicalJson({ a }) === canonicalJson({ a: b })

/** Tendency from whether the new version includes the old one and the other way around. */
function tendencyOf(newIncludesOld: boolean, oldIncludesNew: boolean): Tendency {
  if (newIncludesOld) return oldIncludesNew ? 'same' : 'widens'
  return oldIncludesNew ? 'narrows' : 'unknown'
}

function ruleTendency(before: Rule, after: Rule): Tendency {
  if (before.effect === 'allow' && after.effect === 'allow')
    return tendencyOf(
      allowIncludes(after, before, 'same rule'),
      allowIncludes(before, after, 'same rule'),
    )
  return tendencyOf(restrictionIncludes(after, before), restrictionIncludes(before, after))
}

/** Yields the entries of two lists by ID, sorted. */
function* paired<T>(
  before: ReadonlyMap<string, T>,
  after: ReadonlyMap<string, T>,
): Generator<[id: string, before: T | undefined, after: T | undefined]> {
  for (const id of [...new Set([...before.keys(), ...after.keys()])].sort())
    if (!same(before.get(id), after.get(id))) yield [id, before.get(id), after.get(id)]
}

const byId = <T extends { id: string }>(list: readonly T[]): ReadonlyMap<string, T> =>
  new Map(list.map((each) => [each.id, each]))

function ruleDifferences(before: PolicyDocument, after: PolicyDocument): Difference[] {
  return [...paired(byId<Rule>(before.rules), byId<Rule>(after.rules))].map(([id, old, next]) => {
    const path = `rules.${id}`
    const present = next ?? old
    const isAllow = present?.effect === 'allow'
    if (old === undefined || next === undefined) {
      const isAdded = old === undefined
      return {
        path,
        change: isAdded ? 'added' : 'removed',
        tendency: isAdded === isAllow ? 'widens' : 'narrows',
        sentence: `${isAdded ? 'New' : 'Removed'} rule ${ruleSentence(present as Rule)}`,
      }
    }
    return {
      path,
      change: 'changed',
      tendency: ruleTendency(old, next),
      sentence: `Rule ${ruleSentence(next)} Before: ${ruleSentence(old).slice(`${id}: `.length)}`,
    }
  })
}

/** Describes a key so that two keys of one ID are told apart. */
const keyText = ({ id, kind, alg, spki }: Person['keys'][number]): string =>
  `${id} (${kind}, ${alg}, ${spki})`

/** Joins words, or states that there are none. */
const listText = (words: readonly string[]): string => join(words) || '(none)'

function keyDifferences(path: string, label: string, before: Person, after: Person): Difference[] {
  return [...paired(byId(before.keys), byId(after.keys))].map(([key, was, is]) => {
    const removed = was ? [`the key ${keyText(was)} is removed`] : []
    const added = is ? [`the key ${keyText(is)} is added`] : []
    return {
      path: `${path}.keys.${key}`,
      change: was === undefined ? 'added' : is === undefined ? 'removed' : 'changed',
      tendency: was === undefined ? 'widens' : is === undefined ? 'narrows' : 'unknown',
      sentence: `${label}: ${join([...removed, ...added])}.`,
    }
  })
}

function changesOfPerson(path: string, label: string, before: Person, after: Person): Difference[] {
  const found = keyDifferences(path, label, before, after)
  if (!same(before.api_keys, after.api_keys))
    found.push({
      path: `${path}.api_keys`,
      change: 'changed',
      tendency: 'unknown',
      sentence: `${label}: the API keys are ${listText(after.api_keys)}. Before: ${listText(before.api_keys)}.`,
    })
  if (before.name !== after.name || before.machine !== after.machine)
    found.push({
      path: `${path}.name`,
      change: 'changed',
      tendency: 'same',
      sentence: `${label} was named ${quote(before.name)}.`,
    })
  return found
}

function personDifferences(before: PolicyDocument, after: PolicyDocument): Difference[] {
  const pairs = [...paired(byId<Person>(before.people), byId<Person>(after.people))]
  return pairs.flatMap(([id, old, next]): Difference[] => {
    const path = `people.${id}`
    const present = (next ?? old) as Person
    const label = `${id} (${quote(present.name)})`
    if (old !== undefined && next !== undefined) return changesOfPerson(path, label, old, next)
    const { keys, api_keys } = present
    return [
      {
        path,
        change: old === undefined ? 'added' : 'removed',
        // A person owns API keys, so who may approve their requests changes too.
        tendency: 'unknown',
        sentence: `${old === undefined ? 'New' : 'Removed'} person ${label} with the keys ${listText(keys.map(keyText))} and the API keys ${listText(api_keys)}.`,
      },
    ]
  })
}

function groupDifferences(before: PolicyDocument, after: PolicyDocument): Difference[] {
  const groups = (document: PolicyDocument) => new Map(Object.entries(document.groups))
  // More people who can stop or veto is less that passes, and more who can approve is more.
  const restricts = new Set(
    [before, after].flatMap(({ stop, change }) => [stop.group, change.veto]),
  )
  return [...paired(groups(before), groups(after))].map(([group, old = [], next = []]) => {
    const added = next.filter((each) => !old.includes(each))
    const removed = old.filter((each) => !next.includes(each))
    return {
      path: `groups.${group}`,
      change: old.length === 0 ? 'added' : next.length === 0 ? 'removed' : 'changed',
      tendency:
        added.length + removed.length > 0 && restricts.has(group)
          ? 'unknown'
          : tendencyOf(removed.length === 0, added.length === 0),
      sentence: `Group ${group}: ${
        join([
          ...(added.length > 0 ? [`${join(added)} added`] : []),
          ...(removed.length > 0 ? [`${join(removed)} removed`] : []),
        ]) || 'the same people in another order'
      }.`,
    }
  })
}

/** Fields of a document with a list of approvals. */
const QUORUMS = ['change', 'resume', 'enrolment', 'orders'] as const

function quorumDifferences(before: PolicyDocument, after: PolicyDocument): Difference[] {
  return QUORUMS.flatMap((field): Difference[] => {
    const [old, next] = [before[field]?.approvals, after[field]?.approvals]
    if (same(old, next)) return []
    const text = (approvals: Approvals | undefined): string =>
      approvals ? approvalsText(approvals) : 'no approvals'
    return [
      {
        path: `${field}.approvals`,
        change: old === undefined ? 'added' : next === undefined ? 'removed' : 'changed',
        tendency: tendencyOf(
          quorumsInclude({ approvals: next }, { approvals: old }),
          quorumsInclude({ approvals: old }, { approvals: next }),
        ),
        sentence: `${field} needs ${text(next)}. Before: ${text(old)}.`,
      },
    ]
  })
}

const feesText = ({ fees }: PolicyDocument): string =>
  fees === undefined ? 'absent, so all fees count' : quote(fees)

function fieldDifferences(before: PolicyDocument, after: PolicyDocument): Difference[] {
  const [old, next] = [before.change.delay_s, after.change.delay_s]
  const changed = (path: string, was: string, is: string, tendency: Tendency): Difference[] =>
    was === is
      ? []
      : [{ path, change: 'changed', tendency, sentence: `${path} is ${is}. Before: ${was}.` }]
  return [
    ...(['mode', 'workspace', 'nodes'] as const).flatMap((field) =>
      changed(field, quote(before[field]), quote(after[field]), 'unknown'),
    ),
    ...changed(
      'change.delay_s',
      durationText(old),
      durationText(next),
      next < old ? 'widens' : 'narrows',
    ),
    ...changed(
      'fees',
      feesText(before),
      feesText(after),
      after.fees === undefined ? 'narrows' : 'widens',
    ),
    ...changed('change.veto', before.change.veto, after.change.veto, 'unknown'),
    ...changed('stop.group', before.stop.group, after.stop.group, 'unknown'),
  ]
}

/**
 * Returns the differences of two documents, each with a sentence and its tendency. `number` and
 * `previous` are left out. A tendency other than `unknown` is certain.
 */
export function diff(before: PolicyDocument, after: PolicyDocument): Difference[] {
  return [
    ...fieldDifferences(before, after),
    ...quorumDifferences(before, after),
    ...groupDifferences(before, after),
    ...personDifferences(before, after),
    ...ruleDifferences(before, after),
  ]
}
