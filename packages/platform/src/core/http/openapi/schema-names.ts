/**
 * Nouns for what an operation does. The response of `estimateFee` is a `FeeEstimate`; an empty noun
 * means the object itself, so the response of `readTicker` is a `Ticker`.
 */
const NOUNS: Record<string, string> = {
  delete: 'Deletion',
  estimate: 'Estimate',
  evaluate: 'Evaluation',
  give: 'Outcome',
  read: '',
  resume: 'Resumption',
  simulate: 'Simulation',
  stop: 'StopOrder',
  suspend: 'Suspension',
  unfreeze: 'Release',
  validate: 'Validation',
  veto: 'Veto',
}

const singular = (plural: string): string =>
  plural.replace(/ies$/, 'y').replace(/(?<=ch|x|ss)es$|(?<!s)s$/, '')

/**
 * Returns the name of a response's schema that has no name of its own (`.meta({ id })`). It is never
 * the operation's name with `Response`, because generators of clients use these names themselves.
 * @param id operation, for example `listEvents`
 * @throws Error if the verb of the operation has no noun
 */
export function responseName(id: string): string {
  const [, verb = '', object = ''] = /^([a-z]+)(.*)$/.exec(id) ?? []
  if (verb === 'list') return `${singular(object)}Page`
  const noun = NOUNS[verb]
  if (noun === undefined)
    throw new Error(`${id}: name the schema of the response with .meta({ id: … })`)
  return `${object}${noun}`
}
