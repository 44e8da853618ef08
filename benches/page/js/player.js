/**
 * Play, pause and step through the waves.
 *
 * Nothing moves until asked to. Who prefers reduced motion gets a wave a second at
 * most; the others get through any product in a few seconds.
 *
 * @module player
 */
class Player {
  #timer = null;
  #changed;

  /** @param {(wave: number) => void} changed  called with the wave, from 0 */
  constructor(changed) {
    this.#changed = changed;
    byId("wave").addEventListener("input", () => {
      this.#pause();
      this.#announce();
    });
    byId("back").addEventListener("click", () => this.#step(-1));
    byId("forward").addEventListener("click", () => this.#step(1));
    byId("play").addEventListener("click", () => (this.#timer ? this.#pause() : this.#play()));
  }

  /** The current wave, from 0. */
  get wave() {
    return Number(byId("wave").value) - 1;
  }

  /** A product of so many waves; the slider stays where it is, if it can. */
  waves(waves) {
    byId("wave").max = waves;
    this.#label();
  }

  #label() {
    byId("wave-number").textContent = `wave ${this.wave + 1} of ${byId("wave").max}`;
  }

  #announce() {
    this.#label();
    this.#changed(this.wave);
  }

  #step(by) {
    this.#pause();
    byId("wave").stepUp(by);
    this.#announce();
  }

  #play() {
    const slider = byId("wave");
    if (slider.value === slider.max) slider.value = 1;
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const pause = calm ? 1000 : Math.min(700, Math.max(60, 6000 / slider.max));
    this.#timer = setInterval(() => {
      slider.stepUp();
      this.#announce();
      if (slider.value === slider.max) this.#pause();
    }, pause);
    byId("play").textContent = "Pause";
    // A screen reader would read without end.
    byId("wave-text").setAttribute("aria-live", "off");
    this.#announce();
  }

  #pause() {
    clearInterval(this.#timer);
    this.#timer = null;
    byId("play").textContent = "Play";
    byId("wave-text").setAttribute("aria-live", "polite");
  }
}
