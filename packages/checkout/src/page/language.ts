import { createContext, h, type ComponentChildren, type VNode } from 'preact'
import { useContext } from 'preact/hooks'
import type { Catalogue } from './catalogue/catalogue.ts'
import { numbersOf, type Numbers } from './numbers.ts'

/** Each language in its own name. */
export const LANGUAGES = {
  en: 'English',
  de: 'Deutsch',
  es: 'Español',
  ru: 'Русский',
  zh: '中文',
  ar: 'العربية',
}
export type Language = keyof typeof LANGUAGES

/** Each language is a separate file, so that the page loads only one. */
const LOADERS: Record<Language, () => Promise<Catalogue<'other'>>> = {
  en: async () => (await import('./catalogue/en.ts')).en,
  de: async () => (await import('./catalogue/de.ts')).de,
  es: async () => (await import('./catalogue/es.ts')).es,
  ru: async () => (await import('./catalogue/ru.ts')).ru,
  zh: async () => (await import('./catalogue/zh.ts')).zh,
  ar: async () => (await import('./catalogue/ar.ts')).ar,
}
const REMEMBERED = 'custody-checkout-language'

const existing = (tag: string | null | undefined): Language | null => {
  const base = (tag ?? '').toLowerCase().split(/[-_]/)[0] as string
  return Object.hasOwn(LANGUAGES, base) ? (base as Language) : null
}

/** A browser may deny storage in a frame of another site. */
function stored(): string | null {
  try {
    return localStorage.getItem(REMEMBERED)
  } catch {
    return null
  }
}

/**
 * Returns the language of `?lang=`, otherwise the one chosen earlier, otherwise the browser's first
 * available one, otherwise English.
 */
export function preferredLanguage(): Language {
  const request = existing(new URLSearchParams(location.search).get('lang'))
  return (
    request ??
    existing(stored()) ??
    navigator.languages.map(existing).find((each) => each !== null) ??
    'en'
  )
}

export function rememberLanguage(language: Language): void {
  try {
    localStorage.setItem(REMEMBERED, language)
  } catch {
    /* The language is not stored. */
  }
}

type Values = Record<string, ComponentChildren>

/** Texts and formats of one language. */
export interface Speech extends Numbers {
  language: Language
  words: Catalogue<'other'>
  /**
   * Returns a sentence with its values, each isolated from the direction of the surrounding text.
   */
  say(sentence: string, values: Values): ComponentChildren
  /** Returns the sentence as plain text. */
  translate(sentence: string, values: Record<string, string>): string
  /** Returns the form for `count`, with `{n}` and the other values filled in. */
  count(forms: Record<'other', string>, count: number, values?: Record<string, number>): string
  /** Formats hour and minute, with the day if it is not today. */
  time(date: Date, now: Date): string
  moment(date: Date): string
}

const PLACE = /\{(\w+)\}/

function createSpeech(language: Language, words: Catalogue<'other'>): Speech {
  const locale = `${language}-u-nu-latn`
  const rules = new Intl.PluralRules(locale)
  const numbers = numbersOf(language)
  const translate: Speech['translate'] = (sentence, values) =>
    sentence.replaceAll(/\{(\w+)\}/g, (_, name: string) => values[name] ?? '')
  return {
    ...numbers,
    language,
    words,
    translate,
    say: (sentence, values) =>
      sentence.split(PLACE).map((part, at): VNode | string => {
        if (at % 2 === 0) return part
        const value = values[part]
        return typeof value === 'string' ? h('bdi', null, value) : (value as VNode)
      }),
    count: (forms, count, values = {}) => {
      const form = (forms as Record<string, string>)[rules.select(count)] ?? forms.other
      return translate(
        form,
        Object.fromEntries(
          Object.entries({ n: count, ...values }).map(([name, value]) => [
            name,
            numbers.whole(value),
          ]),
        ),
      )
    },
    time: (date, now) =>
      new Intl.DateTimeFormat(locale, {
        hour: 'numeric',
        minute: '2-digit',
        ...(date.toDateString() === now.toDateString() ? {} : { day: 'numeric', month: 'short' }),
      }).format(date),
    moment: (date) =>
      new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short' }).format(date),
  }
}

/** Loads a language and sets the document's language and direction. */
export async function speak(language: Language): Promise<Speech> {
  const words = await LOADERS[language]()
  document.documentElement.lang = language
  document.documentElement.dir = language === 'ar' ? 'rtl' : 'ltr'
  return createSpeech(language, words)
}

export const SpeechContext = createContext<Speech | null>(null)

/** Returns the language of the components below the page's root. */
export const useSpeech = (): Speech => useContext(SpeechContext) as Speech
