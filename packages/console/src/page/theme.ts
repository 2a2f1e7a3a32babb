import { effect, signal } from '@preact/signals'

type Theme = 'system' | 'light' | 'dark'
const STORED = 'custody-console-theme'
const THEMES: readonly Theme[] = ['system', 'light', 'dark']

const stored = localStorage.getItem(STORED) as Theme | null

/** The person's choice. */
export const theme = signal<Theme>(stored !== null && THEMES.includes(stored) ? stored : 'system')

/** Returns the next theme in rotation. */
export const nextTheme = (): Theme =>
  THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] as Theme

export function startTheme(): void {
  effect(() => {
    if (theme.value === 'system') delete document.documentElement.dataset['theme']
    else document.documentElement.dataset['theme'] = theme.value
    localStorage.setItem(STORED, theme.value)
  })
}
