import { ERRORS, type ErrorCode } from '../errors.ts'
import { EXPLANATIONS, RETRIES } from '../errors-explained.ts'

/**
 * Returns docs/errors.md, generated from the registry: one heading, and therefore one anchor, for
 * each code.
 */
export function errorsDocument(): string {
  const codes = Object.keys(ERRORS) as ErrorCode[]
  const sections = codes.map((code) => {
    const [status, title] = ERRORS[code]
    const { why, action, retry } = EXPLANATIONS[code]
    return `## ${code}\n\n**${status}** · ${title}.\n\n${why} ${action}\n\n${RETRIES[retry]}\n`
  })
  return `# Errors

<!-- made by scripts/errors-page.mjs -->

Every refusal is \`application/problem+json\` with \`code\`, \`message\` and, where one field is to blame, \`field\`. Its \`type\` is the
address of its code on your own platform, \`/reference/errors#CODE\`, which says the same as this page. A code never changes its meaning.

${sections.join('\n')}`
}
