// CHANGELOG.md, in the format of Keep a Changelog 1.1.

/** Headings of a version: `## [1.2.3] - 2026-01-31`, or `- Unreleased`. */
const HEADING = /^## \[([^\]]+)\](?: - (.+))?$/gm

/**
 * Returns the versions of a changelog, newest first, each with its date ("Unreleased" or null) and
 * text.
 */
export function sectionsOf(changelog) {
  const headings = [...changelog.matchAll(HEADING)]
  return headings.map((match, at) => ({
    version: match[1],
    date: match[2] ?? null,
    heading: match[0],
    text: changelog.slice(match.index + match[0].length, headings[at + 1]?.index).trim(),
  }))
}

/**
 * Returns the changelog with its newest section released.
 *
 * @param changelog text whose first section is `[X.Y.Z] - Unreleased` or `[Unreleased]`
 * @param version version to release
 * @param date day of the release, YYYY-MM-DD
 * @returns the new text, and the notes of the version
 * @throws Error if there is nothing to release, or the version was released before
 */
export function releaseSection(changelog, version, date) {
  const [newest, ...older] = sectionsOf(changelog)
  if (older.some((each) => each.version === version))
    throw new Error(`CHANGELOG.md: version ${version} was released before`)
  if (!newest || !(newest.date === 'Unreleased' || newest.version === 'Unreleased'))
    throw new Error(
      'CHANGELOG.md: the first section is not unreleased. Begin it with "## [Unreleased]".',
    )
  if (newest.version !== 'Unreleased' && newest.version !== version)
    throw new Error(
      `CHANGELOG.md: the unreleased section is of version ${newest.version}, not ${version}`,
    )
  if (!/^- \S/m.test(newest.text))
    throw new Error('CHANGELOG.md: the unreleased section has no entry')
  return {
    text: changelog.replace(newest.heading, () => `## [${version}] - ${date}`),
    notes: newest.text,
  }
}
